// SHA-256 and Ed25519, through nettle.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cxxinductor::package_file {

using Digest = std::array<std::byte, 32>;     // SHA-256
using PublicKey = std::array<std::byte, 32>;  // Ed25519
using Signature = std::array<std::byte, 64>;  // Ed25519

class Hasher {
 public:
  Hasher();
  ~Hasher();
  void add(std::span<const std::byte> bytes);
  Digest finish();  // the last call

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

// Of sections: the SHA-256 of the SHA-256s of each 2^20 bytes, so that several threads can compute it. Bytes come in pieces of any size.
class SectionHasher {
 public:
  void add(std::span<const std::byte> bytes);
  Digest finish();  // the last call

 private:
  void end_chunk();
  std::optional<Hasher> chunk_;
  size_t filled_ = 0;
  std::vector<Digest> digests_;
};
// Calls the function for each number below `count`, perhaps several at once; empty: in turn.
using ParallelFor = std::function<void(size_t count, const std::function<void(size_t)>& work)>;
Digest section_digest(std::span<const std::byte> bytes, const ParallelFor& parallel_for = {});

// Lower case, two digits per byte.
std::string to_hex(std::span<const std::byte> bytes);
// 64 hexadecimal digits. UserError that names `what`.
PublicKey parse_public_key(std::string_view text, std::string_view what);

// An Ed25519 key that signs.
class SigningKey {
 public:
  // From PEM text, as `openssl genpkey -algorithm ed25519` writes it. UserError that names `what`.
  SigningKey(std::string_view pem, std::string_view what);
  ~SigningKey();
  SigningKey(SigningKey&&) noexcept;
  PublicKey public_key() const;
  Signature sign(std::span<const std::byte> message) const;

 private:
  struct Key;
  std::unique_ptr<Key> key_;
};

bool is_signed(std::span<const std::byte> message, const Signature& signature, const PublicKey& key);

}  // namespace cxxinductor::package_file
