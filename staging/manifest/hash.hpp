// XXH3-128: detects corruption, not tampering. The only user of xxHash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/units.hpp"

struct XXH3_state_s;

namespace spark::staging {

struct Digest {
  std::uint64_t high = 0, low = 0;
  bool operator==(const Digest&) const = default;
};

std::string to_hex(const Digest& digest);  // 32 digits, as xxh128sum prints it
std::optional<Digest> digest_from_hex(std::string_view text);

// A file's content is hashed in pieces of this size, independently of the read size, so that pieces can be
// hashed in parallel and resumed. The hash of a file with one piece is the piece's own, and equals
// xxh128sum's. With more pieces it is XXH3-128 over the pieces' digests, big-endian and in order.
inline constexpr Bytes kHashPiece = 8 * kMiB;

std::uint64_t piece_count(Bytes size);  // at least 1: an empty file has one empty piece
Bytes piece_bytes(Bytes size, std::uint64_t piece);
Digest digest_of_pieces(std::span<const Digest> pieces);

class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void reset();
  void add(std::span<const std::byte> bytes);
  void add(std::string_view bytes);
  void add_number(std::uint64_t number);  // 8 bytes, big-endian
  void add_zeros(Bytes count);            // of a hole
  Digest digest();

 private:
  struct Free {
    void operator()(XXH3_state_s* state) const;
  };
  std::unique_ptr<XXH3_state_s, Free> state_;
  Bytes zeros_ = 0;         // zeros added so far, if nothing else was added
  bool only_zeros_ = true;  // a piece that is all hole has a known digest
  void add_pending_zeros();
};

Digest digest_of(std::span<const std::byte> bytes);
Digest digest_of(std::string_view bytes);

}  // namespace spark::staging
