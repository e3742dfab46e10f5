// A file that is copied without a journal or a viewer; remembers what was read of it, and in which order.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/units.hpp"
#include "staging/copy/lanes/file_work.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging::test {

class CopiedFile final : public FileWork {
 public:
  // Copies `name` of the tree to `name`.copy.
  CopiedFile(const Tree& tree, const std::string& name)
      : right_(read_text(std::filesystem::path(tree.root()) / name)) {
    source_.tree = copy_.tree = &tree;
    source_.path = name;
    copy_.path = name + ".copy";
    source_.size = copy_.size = right_.size();
  }

  std::function<void(Bytes offset)> before_read_{};

  Result<> start() override {
    const int folder = source_.tree->folder.get();
    source_.fd.reset(::openat(folder, source_.path.c_str(), O_RDONLY | O_CLOEXEC));
    copy_.fd.reset(::openat(folder, copy_.path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    source_.mode = make_direct(source_.fd.get());
    copy_.mode = make_direct(copy_.fd.get());
    const std::size_t alignment = std::max(source_.mode.alignment, copy_.mode.alignment);
    source_.mode.alignment = copy_.mode.alignment = alignment;
    source_.is_sparse = allocated(std::filesystem::path(source_.tree->root()) / source_.path) < source_.size;
    EXPECT_EQ(::ftruncate(copy_.fd.get(), static_cast<off_t>(rounded_up(copy_.size, alignment))), 0);
    return {};
  }
  std::vector<std::uint64_t> to_do() const override {
    std::vector<std::uint64_t> pieces;
    for (std::uint64_t i = piece_count(source_.size); i-- > 0;) pieces.push_back(i);
    return pieces;
  }
  WorkFiles files() const override { return {source_, &copy_}; }
  Result<> before_read(Bytes offset, std::size_t bytes) override {
    {
      const std::scoped_lock lock(mutex_);
      reads_.emplace_back(offset, bytes);
    }
    if (before_read_) before_read_(offset);
    return {};
  }
  void moved(Bytes bytes) override {
    const std::scoped_lock lock(mutex_);
    moved_ += bytes;
  }
  void piece_done(std::uint64_t piece, const PieceOutcome& outcome) override {
    const std::scoped_lock lock(mutex_);
    if (outcome.ended_early) {
      ended_early_ = true;
    } else if (outcome.units) {
      EXPECT_EQ(outcome.units->first / kUnitsOfPiece, piece);
      for (std::uint64_t i = 0; i < outcome.units->count; ++i) show(outcome.units->first + i);
    } else {
      EXPECT_TRUE(digests_.emplace(piece, outcome.digest).second) << piece << " was copied twice";
    }
  }
  Result<bool> finish() override { return true; }

  const OpenedFile& copy() const { return copy_; }
  const std::vector<std::pair<Bytes, std::size_t>>& reads() const { return reads_; }
  const std::vector<std::uint64_t>& shown() const { return shown_; }  // units, before the end of their piece
  Bytes moved() const { return moved_; }
  bool has_ended_early() const { return ended_early_; }

  // That each byte was read once, and the copy and all digests are right.
  void expect_right() {
    std::map<Bytes, std::size_t> by_offset;
    for (const auto& [offset, bytes] : reads_)
      EXPECT_TRUE(by_offset.emplace(offset, bytes).second) << offset << " was read twice";
    Bytes end = 0, read = 0;
    for (const auto& [offset, bytes] : by_offset) {
      EXPECT_GE(offset, end) << "read twice";
      end = offset + bytes;
      read += bytes;
    }
    if (!source_.is_sparse) {
      EXPECT_EQ(read, source_.size);
    }
    EXPECT_EQ(moved_, source_.size);
    EXPECT_EQ(digests_.size(), piece_count(source_.size));
    for (const auto& [piece, digest] : digests_) {
      Hasher hasher;
      hasher.add(std::string_view(right_).substr(piece * kHashPiece, kHashPiece));
      EXPECT_EQ(digest, hasher.digest()) << piece;
    }
    EXPECT_TRUE(read_text(std::filesystem::path(source_.tree->root()) / copy_.path).substr(0, copy_.size) ==
                right_);
  }

 private:
  std::string right_;
  OpenedFile source_, copy_;
  std::mutex mutex_;
  std::vector<std::pair<Bytes, std::size_t>> reads_;
  std::vector<std::uint64_t> shown_;
  std::map<std::uint64_t, Digest> digests_;
  Bytes moved_ = 0;
  bool ended_early_ = false;

  // Its bytes must be in the copy.
  void show(std::uint64_t unit) {
    shown_.push_back(unit);
    const Bytes at = unit * kViewUnit;
    const std::size_t bytes = std::min(kViewUnit, source_.size - at);
    const IoBuffer buffer(kViewUnit);
    const ReadOutcome read = read_at(copy_.fd.get(), copy_.mode, buffer.data(), bytes, at);
    EXPECT_EQ(read.bytes, bytes);
    EXPECT_TRUE(std::string_view(reinterpret_cast<const char*>(buffer.data()), bytes) ==
                std::string_view(right_).substr(at, bytes))
        << unit;
  }
};

}  // namespace spark::staging::test
