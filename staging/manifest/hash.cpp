#include "staging/manifest/hash.hpp"

#include <xxhash.h>
#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>  // the library's AVX2 and AVX-512 code, where the CPU has them: half the time
#endif

#include <algorithm>
#include <array>
#include <new>
#include <vector>

namespace spark::staging {
namespace {

constexpr std::array<std::byte, 65536> kZeros{};

Digest from_xxh(XXH128_hash_t hash) {
  return {hash.high64, hash.low64};
}

std::array<std::byte, 8> big_endian(std::uint64_t number) {
  std::array<std::byte, 8> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(number >> (56 - 8 * i) & 0xFF);
  }
  return bytes;
}

Digest digest_of_zero_piece() {
  static const Digest digest = [] {
    const std::vector<std::byte> zeros(kHashPiece);
    return from_xxh(XXH3_128bits(zeros.data(), zeros.size()));
  }();
  return digest;
}

}  // namespace

std::string to_hex(const Digest& digest) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {digest.high, digest.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += kHex[half >> shift & 15];
  }
  return text;
}

std::optional<Digest> digest_from_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  Digest digest;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && !(c >= 'a' && c <= 'f')) return std::nullopt;
    std::uint64_t& half = i < 16 ? digest.high : digest.low;
    half = half << 4 | static_cast<std::uint64_t>(is_digit ? c - '0' : c - 'a' + 10);
  }
  return digest;
}

std::uint64_t piece_count(Bytes size) {
  return std::max<std::uint64_t>(1, (size + kHashPiece - 1) / kHashPiece);
}

Bytes piece_bytes(Bytes size, std::uint64_t piece) {
  const Bytes begin = std::min(size, piece * kHashPiece);
  return std::min(size, begin + kHashPiece) - begin;
}

Digest digest_of_pieces(std::span<const Digest> pieces) {
  if (pieces.size() == 1) return pieces.front();
  Hasher hasher;
  for (const Digest& piece : pieces) {
    hasher.add_number(piece.high);
    hasher.add_number(piece.low);
  }
  return hasher.digest();
}

Hasher::Hasher() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  reset();
}

Hasher::~Hasher() = default;

void Hasher::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

void Hasher::reset() {
  XXH3_128bits_reset(state_.get());
  zeros_ = 0;
  only_zeros_ = true;
}

void Hasher::add_pending_zeros() {
  for (; zeros_ > 0; zeros_ -= std::min<Bytes>(zeros_, kZeros.size())) {
    XXH3_128bits_update(state_.get(), kZeros.data(), std::min<Bytes>(zeros_, kZeros.size()));
  }
}

void Hasher::add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  add_pending_zeros();
  only_zeros_ = false;
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

void Hasher::add(std::string_view bytes) {
  add(std::as_bytes(std::span(bytes)));
}

void Hasher::add_number(std::uint64_t number) {
  add(big_endian(number));
}

void Hasher::add_zeros(Bytes count) {
  zeros_ += count;
}

Digest Hasher::digest() {
  if (only_zeros_ && zeros_ == kHashPiece) return digest_of_zero_piece();
  add_pending_zeros();
  return from_xxh(XXH3_128bits_digest(state_.get()));
}

Digest digest_of(std::span<const std::byte> bytes) {
  Hasher hasher;
  hasher.add(bytes);
  return hasher.digest();
}

Digest digest_of(std::string_view bytes) {
  return digest_of(std::as_bytes(std::span(bytes)));
}

}  // namespace spark::staging
