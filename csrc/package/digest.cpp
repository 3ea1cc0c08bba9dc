#include "package/digest.h"

#include <nettle/base64.h>
#include <nettle/eddsa.h>
#include <nettle/sha2.h>

#include <algorithm>

#include "support/error.h"

namespace cxxinductor::package_file {
namespace {

template <class Byte>
auto* as_uint8(Byte* bytes) {
  return reinterpret_cast<std::conditional_t<std::is_const_v<Byte>, const uint8_t, uint8_t>*>(bytes);
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

struct Hasher::Context {
  sha256_ctx hash;
};

Hasher::Hasher() : context_(std::make_unique<Context>()) { sha256_init(&context_->hash); }
Hasher::~Hasher() = default;

void Hasher::add(std::span<const std::byte> bytes) { sha256_update(&context_->hash, bytes.size(), as_uint8(bytes.data())); }

Digest Hasher::finish() {
  Digest digest;
  sha256_digest(&context_->hash, digest.size(), as_uint8(digest.data()));
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
  std::array<uint8_t, ED25519_KEY_SIZE> secret{};
  PublicKey public_key{};
};

namespace {

// PKCS #8 around an Ed25519 key, as DER (RFC 8410, section 7): all but the 32 bytes of the key at its end are the same in every key.
constexpr std::array<uint8_t, 16> der_prefix = {0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20};

// What stands in base64 between the lines of a PEM text (RFC 7468); empty if it is not one, or longer than a key.
std::vector<uint8_t> decode_pem(std::string_view pem) {
  constexpr std::string_view begin = "-----BEGIN PRIVATE KEY-----", end = "-----END PRIVATE KEY-----";
  const size_t at = pem.find(begin);
  if (at == std::string_view::npos) return {};
  const std::string_view body = pem.substr(at + begin.size());
  const std::string_view text = body.substr(0, body.find(end));
  if (text.size() == body.size() || text.size() > 1024) return {};
  std::vector<uint8_t> bytes(BASE64_DECODE_LENGTH(text.size()));
  size_t size = bytes.size();
  base64_decode_ctx decoder;
  base64_decode_init(&decoder);
  if (base64_decode_update(&decoder, &size, bytes.data(), text.size(), text.data()) != 1 || base64_decode_final(&decoder) != 1) return {};
  bytes.resize(size);
  return bytes;
}

}  // namespace

SigningKey::SigningKey(std::string_view pem, std::string_view what) : key_(std::make_unique<Key>()) {
  const std::vector<uint8_t> der = decode_pem(pem);
  if (der.size() != der_prefix.size() + key_->secret.size() || !std::equal(der_prefix.begin(), der_prefix.end(), der.begin()))
    throw_user_error("{}: expected an Ed25519 private key as PEM, as `openssl genpkey -algorithm ed25519` writes it", what);
  std::copy(der.begin() + der_prefix.size(), der.end(), key_->secret.begin());
  ed25519_sha512_public_key(as_uint8(key_->public_key.data()), key_->secret.data());
}
SigningKey::~SigningKey() = default;
SigningKey::SigningKey(SigningKey&&) noexcept = default;

PublicKey SigningKey::public_key() const { return key_->public_key; }

Signature SigningKey::sign(std::span<const std::byte> message) const {
  Signature signature;
  ed25519_sha512_sign(as_uint8(key_->public_key.data()), key_->secret.data(), message.size(), as_uint8(message.data()), as_uint8(signature.data()));
  return signature;
}

bool is_signed(std::span<const std::byte> message, const Signature& signature, const PublicKey& key) {
  return ed25519_sha512_verify(as_uint8(key.data()), message.size(), as_uint8(message.data()), as_uint8(signature.data())) == 1;
}

}  // namespace cxxinductor::package_file
