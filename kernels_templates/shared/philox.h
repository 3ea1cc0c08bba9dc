// Random words as curand and ATen draw them: a function of seed, call and position. Part of scalar_math.h. The prelude has
// cxxi_whole_product(a, b), all 64 bits of a product of 32-bit integers.
// Philox4x32-10 (Salmon et al., SC 2011), see philox and philox_pair in ops.def.
struct cxxi_philox_words {
  unsigned int x, y, z, w;
};
CXXI_FN cxxi_philox_words cxxi_philox_call(long long seed, unsigned long long number, unsigned int sequence) {
  unsigned int x = (unsigned int)(number), y = (unsigned int)(number >> 32), z = sequence, w = 0;
  unsigned int low = (unsigned int)(seed), high = (unsigned int)((unsigned long long)(seed) >> 32);
  for (int round = 0; round < 10; ++round) {
    const unsigned long long first = cxxi_whole_product(x, 0xD2511F53u), third = cxxi_whole_product(z, 0xCD9E8D57u);
    x = (unsigned int)(third >> 32) ^ y ^ low;
    z = (unsigned int)(first >> 32) ^ w ^ high;
    y = (unsigned int)(third);
    w = (unsigned int)(first);
    low += 0x9E3779B9u;
    high += 0xBB67AE85u;
  }
  return {x, y, z, w};
}
CXXI_FN cxxi_philox_words cxxi_philox_draw(long long seed, long long call, unsigned int four, unsigned int fours,
                                           unsigned int threads) {
  // Sums, not selects: with selects the compiler duplicates what follows.
  const unsigned int width = fours + (fours == 0u), all = threads + (threads == 0u), turn = four / width;
  return cxxi_philox_call(seed, (unsigned long long)(call) + (unsigned long long)(turn / all) * width + four % width, turn % all);
}
CXXI_FN long long cxxi_philox_word(const cxxi_philox_words& words, int number) {
  return number == 0 ? words.x : number == 1 ? words.y : number == 2 ? words.z : words.w;
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_philox(T seed, T call, T position, T fours, T threads) {
  const unsigned int four = (unsigned int)((unsigned long long)(position) >> 2);
  return T(cxxi_philox_word(cxxi_philox_draw(seed, call, four, (unsigned int)(fours), (unsigned int)(threads)),
                            int(position) & 3));
}
template <CXXI_NUMBER T>
CXXI_FN T cxxi_philox_pair(T seed, T call, T sequence, T pair) {
  const cxxi_philox_words words = cxxi_philox_call(seed, (unsigned long long)(call), (unsigned int)(sequence));
  const bool second = ((unsigned long long)(pair) & 1u) != 0u;
  return T((unsigned long long)(second ? words.z : words.x) << 32 | (second ? words.w : words.y));
}
