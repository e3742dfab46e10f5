// What of a set is exchanged as a whole: a hash piece of a large file, or a pack of small files in walk
// order. Two hosts whose walks are equal number their units alike.
#pragma once

#include <cstdint>
#include <vector>

#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// Files up to this size are in packs: those that the engine copies in one go each.
inline constexpr Bytes kPackedFile = kMiB;
inline constexpr Bytes kPackBytes = 8 * kMiB;  // of content, at most
inline constexpr std::uint64_t kPackFiles = 1024;

struct Pack {
  std::uint64_t first = 0, count = 0;  // of the small files, in their order
  Bytes bytes = 0;
};

struct Piece {
  std::uint64_t file = 0;   // as added
  std::uint64_t piece = 0;  // of the file
};

class Layout {
 public:
  // In walk order, each file that has content of its own (staging::is_content).
  void add(Bytes size);
  void finish();  // after the last

  std::uint64_t files() const { return sizes_.size(); }
  Bytes size_of(std::uint64_t file) const { return sizes_[file]; }
  static bool is_packed(Bytes size) { return size <= kPackedFile; }

  // Pieces of large files come first, in order, then the packs.
  std::uint64_t units() const { return pieces_ + packs_.size(); }
  std::uint64_t pieces() const { return pieces_; }
  bool is_pack(std::uint64_t unit) const { return unit >= pieces_; }
  const Pack& pack(std::uint64_t unit) const { return packs_[unit - pieces_]; }
  Piece piece(std::uint64_t unit) const;
  std::uint64_t first_unit_of(std::uint64_t file) const;  // of a large file

  // Small files by their order: which file as added each is.
  std::uint64_t small_files() const { return small_.size(); }
  std::uint64_t small(std::uint64_t index) const { return small_[index]; }

 private:
  struct Large {
    std::uint64_t file, first_unit;
  };
  std::vector<Bytes> sizes_;
  std::vector<Large> large_;
  std::vector<std::uint32_t> small_;
  std::vector<Pack> packs_;
  Pack open_;  // the pack that the next small file goes into
  std::uint64_t pieces_ = 0;
};

}  // namespace spark::fleet
