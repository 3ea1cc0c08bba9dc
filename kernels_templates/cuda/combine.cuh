// Stores that combine with what lies in memory. Follows group.cuh in a unit.
//
// put_alone: no other thread touches the element. put_atomic: others may, in any order. Both combine in the compute type
// and round to the element's type each time, as eager's atomics do.
struct cxxi_by_add {
  template <class T>
  static constexpr bool in_memory = cxxi_adds_in_memory<T>;
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return cxxi_add(a, b);
  }
};
struct cxxi_by_mul {
  template <class T>
  static constexpr bool in_memory = false;
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return cxxi_mul(a, b);
  }
};
struct cxxi_by_max {
  template <class T>
  static constexpr bool in_memory = false;
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return cxxi_maximum(a, b);
  }
};
struct cxxi_by_min {
  template <class T>
  static constexpr bool in_memory = false;
  template <class T>
  CXXI_FN static T of(T a, T b) {
    return cxxi_minimum(a, b);
  }
};
template <class Op, class T>
CXXI_FN T cxxi_combine(T old, T value) {
  return cxxi_cast<T>(Op::of(cxxi_widen(old), cxxi_widen(value)));
}
template <class Op, class T>
CXXI_FN void cxxi_put_alone(T* p, T value) {
  *p = cxxi_combine<Op>(*p, value);
}

// Words of 4 and 8 bytes as elements, and the other way.
template <class Word, class T>
union cxxi_word_of {
  Word word;
  T value;
  CXXI_FN static Word from(T v) {
    cxxi_word_of both;
    both.value = v;
    return both.word;
  }
  CXXI_FN static T to(Word w) {
    cxxi_word_of both;
    both.word = w;
    return both.value;
  }
};
template <class Op, class T, class Word>
CXXI_FN void cxxi_put_word(T* p, T value, Word* words) {
  (void)p;
  Word old = *words, seen;
  do {
    seen = old;
    const T now = cxxi_combine<Op>(cxxi_word_of<Word, T>::to(seen), value);
    const Word next = cxxi_word_of<Word, T>::from(now);
    if (next == seen) return;
    old = cxxi_compare_and_swap(words, seen, next);
  } while (old != seen);
}
// Elements of 1 and 2 bytes live in an aligned word of 4.
template <class Op, class T>
CXXI_FN void cxxi_put_part(T* p, T value) {
  const unsigned long long address = (unsigned long long)(p);
  unsigned int* word = (unsigned int*)(address & ~3ULL);
  const int shift = int(address & 3ULL) * 8;
  const unsigned int mask = (sizeof(T) == 1 ? 0xffu : 0xffffu) << shift;
  unsigned int old = *word, seen;
  do {
    seen = old;
    const T now = cxxi_combine<Op>(cxxi_raw<T>::from((seen & mask) >> shift), value);
    const unsigned int next = (seen & ~mask) | ((cxxi_raw<T>::of(now) << shift) & mask);
    if (next == seen) return;
    old = cxxi_compare_and_swap(word, seen, next);
  } while (old != seen);
}

template <class Op, class T>
CXXI_FN void cxxi_put_atomic(T* p, T value) {
  if constexpr (Op::template in_memory<T>) {
    cxxi_add_in_memory(p, value);
  } else if constexpr (sizeof(T) == 8) {
    cxxi_put_word<Op>(p, value, (unsigned long long*)(p));
  } else if constexpr (sizeof(T) == 4) {
    cxxi_put_word<Op>(p, value, (unsigned int*)(p));
  } else {
    cxxi_put_part<Op>(p, value);
  }
}
