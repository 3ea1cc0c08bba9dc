#include "package/digest.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>

#include "support/error.h"

namespace cxxinductor::package_file {
namespace {

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(BIO* source) const { BIO_free(source); }
};
template <class T>
using Owned = std::unique_ptr<T, FreeKey>;

template <class Byte>
auto* as_chars(Byte* bytes) {
  return reinterpret_cast<std::conditional_t<std::is_const_v<Byte>, const unsigned char, unsigned char>*>(bytes);
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// A key with a passphrase must not make a library ask for it on a terminal.
int no_passphrase(char*, int, int, void*) { return -1; }

}  // namespace

struct Hasher::Context {
  Owned<EVP_MD_CTX> hash{EVP_MD_CTX_new()};
};

Hasher::Hasher() : context_(std::make_unique<Context>()) {
  CXXI_CHECK(context_->hash && EVP_DigestInit_ex(context_->hash.get(), EVP_sha256(), nullptr) == 1, "no SHA-256");
}
Hasher::~Hasher() = default;

void Hasher::add(std::span<const std::byte> bytes) {
  CXXI_CHECK(EVP_DigestUpdate(context_->hash.get(), bytes.data(), bytes.size()) == 1, "SHA-256 failed");
}

Digest Hasher::finish() {
  Digest digest;
  CXXI_CHECK(EVP_DigestFinal_ex(context_->hash.get(), as_chars(digest.data()), nullptr) == 1, "SHA-256 failed");
  return digest;
}

namespace {

constexpr size_t chunk_size = size_t{1} << 20;

Digest sha256(std::span<const std::byte> bytes) {
  Hasher hasher;
  hasher.add(bytes);
  return hasher.finish();
}

}  // namespace

void SectionHasher::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (!chunk_) chunk_.emplace();
    const std::span<const std::byte> taken = bytes.first(std::min(bytes.size(), chunk_size - filled_));
    chunk_->add(taken);
    filled_ += taken.size();
    bytes = bytes.subspan(taken.size());
    if (filled_ == chunk_size) end_chunk();
  }
}

void SectionHasher::end_chunk() {
  digests_.push_back(chunk_->finish());
  chunk_.reset();
  filled_ = 0;
}

Digest SectionHasher::finish() {
  if (chunk_) end_chunk();
  return sha256(std::as_bytes(std::span(digests_)));
}

Digest section_digest(std::span<const std::byte> bytes, const ParallelFor& parallel_for) {
  std::vector<Digest> digests((bytes.size() + chunk_size - 1) / chunk_size);
  const auto digest = [&](size_t i) {
    const size_t begin = i * chunk_size;
    digests[i] = sha256(bytes.subspan(begin, std::min(chunk_size, bytes.size() - begin)));
  };
  if (parallel_for) {
    parallel_for(digests.size(), digest);
  } else {
    for (size_t i = 0; i < digests.size(); ++i) digest(i);
  }
  return sha256(std::as_bytes(std::span(digests)));
}

std::string to_hex(std::span<const std::byte> bytes) {
  std::string text;
  for (std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

PublicKey parse_public_key(std::string_view text, std::string_view what) {
  PublicKey key{};
  bool valid = text.size() == 2 * key.size();
  for (size_t i = 0; valid && i < key.size(); ++i) {
    const int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);
    valid = high >= 0 && low >= 0;
    key[i] = static_cast<std::byte>(valid ? 16 * high + low : 0);
  }
  if (!valid) throw_user_error("{}: expected the 64 hexadecimal digits of an Ed25519 public key, found {} characters", what, text.size());
  return key;
}

struct SigningKey::Key {
  Owned<EVP_PKEY> key;
};

SigningKey::SigningKey(std::string_view pem, std::string_view what) : key_(std::make_unique<Key>()) {
  const Owned<BIO> source(BIO_new_mem_buf(pem.data(), static_cast<int>(std::min<size_t>(pem.size(), 1 << 16))));
  key_->key.reset(source ? PEM_read_bio_PrivateKey(source.get(), nullptr, no_passphrase, nullptr) : nullptr);
  if (!key_->key || EVP_PKEY_id(key_->key.get()) != EVP_PKEY_ED25519)
    throw_user_error("{}: expected an Ed25519 private key as PEM, as `openssl genpkey -algorithm ed25519` writes it", what);
}
SigningKey::~SigningKey() = default;
SigningKey::SigningKey(SigningKey&&) noexcept = default;

PublicKey SigningKey::public_key() const {
  PublicKey key;
  size_t size = key.size();
  CXXI_CHECK(EVP_PKEY_get_raw_public_key(key_->key.get(), as_chars(key.data()), &size) == 1 && size == key.size(), "no public key");
  return key;
}

Signature SigningKey::sign(std::span<const std::byte> message) const {
  Signature signature;
  size_t size = signature.size();
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  CXXI_CHECK(context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_->key.get()) == 1 &&
                 EVP_DigestSign(context.get(), as_chars(signature.data()), &size, as_chars(message.data()), message.size()) == 1 &&
                 size == signature.size(),
             "Ed25519 failed");
  return signature;
}

bool is_signed(std::span<const std::byte> message, const Signature& signature, const PublicKey& key) {
  const Owned<EVP_PKEY> verifier(EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, as_chars(key.data()), key.size()));
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  return verifier && context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, verifier.get()) == 1 &&
         EVP_DigestVerify(context.get(), as_chars(signature.data()), signature.size(), as_chars(message.data()), message.size()) == 1;
}

}  // namespace cxxinductor::package_file
