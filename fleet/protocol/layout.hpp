// Divides a set into units of exchange: a hash piece of a large file, or a pack of small files in walk order.
// Hosts with equal walks number their units identically.
#pragma once

#include <cstdint>
#include <vector>

#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// Files up to this size are packed; the copy engine copies each of them in one step.
inline constexpr Bytes kPackedFile = kMiB;
inline constexpr Bytes kPackBytes = 8 * kMiB;  // maximum content of a pack
inline constexpr std::uint64_t kPackFiles = 1024;

struct Pack {
  std::uint64_t first = 0, count = 0;  // range of small files, in their order
  Bytes bytes = 0;
};

struct Piece {
  std::uint64_t file = 0;   // number of the file, in order of add()
  std::uint64_t piece = 0;  // index within the file
};

class Layout {
 public:
  // Call in walk order, for each file that has content of its own (staging::is_content).
  void add(Bytes size);
  void finish();  // call after the last file

  std::uint64_t files() const { return sizes_.size(); }
  Bytes size_of(std::uint64_t file) const { return sizes_[file]; }
  static bool is_packed(Bytes size) { return size <= kPackedFile; }

  // Pieces of large files come first, in order, then the packs.
  std::uint64_t units() const { return pieces_ + packs_.size(); }
  std::uint64_t pieces() const { return pieces_; }
  bool is_pack(std::uint64_t unit) const { return unit >= pieces_; }
  const Pack& pack(std::uint64_t unit) const { return packs_[unit - pieces_]; }
  Piece piece(std::uint64_t unit) const;
  std::uint64_t first_unit_of(std::uint64_t file) const;  // for a large file

  // Maps the number of a small file to its file number in order of add().
  std::uint64_t small_files() const { return small_.size(); }
  std::uint64_t small(std::uint64_t index) const { return small_[index]; }
  // For a small file: its number among the small ones, and the unit with it.
  std::uint64_t small_of(std::uint64_t file) const;
  std::uint64_t pack_of(std::uint64_t file) const;

 private:
  struct Large {
    std::uint64_t file, first_unit;
  };
  std::vector<Bytes> sizes_;
  std::vector<Large> large_;
  std::vector<std::uint32_t> small_;
  std::vector<Pack> packs_;
  Pack open_;  // receives the next small file
  std::uint64_t pieces_ = 0;
};

}  // namespace spark::fleet
