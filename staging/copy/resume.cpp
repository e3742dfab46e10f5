#include "staging/copy/resume.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "staging/copy/partial/journal.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {
namespace {

Resumed nothing_for(const Entries& entries) {
  Resumed nothing;
  nothing.finished.assign(entries.size(), false);
  nothing.unchanged.assign(entries.size(), false);
  return nothing;
}

class Resume {
 public:
  Resume(const PartialArea& area, Entries& entries, Tree copy)
      : area_(area), entries_(entries), copy_(std::move(copy)) {
    resumed_ = nothing_for(entries);
  }

  // Everything if the earlier attempt wrote a manifest, else the content of its journal.
  Resumed go() {
    const auto data = identity_of(area_.data());
    auto manifest = ManifestReader::open(area_.manifest());
    if (data && manifest && manifest->header().root == *data) {
      while (const auto entry = manifest->next()) take_finished(*entry);
    } else {
      read_journal(area_.journal(), [this](JournalLine line) { take(line); });
    }
    begin_anew_without_pieces();
    count_pieces();
    return std::move(resumed_);
  }

 private:
  const PartialArea& area_;
  Entries& entries_;
  Tree copy_;
  Resumed resumed_;

  void take(const JournalLine& line) {
    if (line.kind == JournalLine::Kind::Finished) {
      take_finished(line.entry);
    } else if (line.kind == JournalLine::Kind::Started) {
      take_started(line.entry);
    } else {
      take_piece(line);
    }
  }

  // Index of this file in the walked source; entries_.size() if it no longer exists.
  std::size_t same_source(const Entry& entry) const {
    const std::size_t index = index_of(entries_, entry.path);
    const bool is_same =
        index < entries_.size() && is_content(entries_[index]) && is_same_source(entry, entries_[index]);
    return is_same ? index : entries_.size();
  }

  // The size of the regular file in the copy; none if there is none.
  std::optional<Bytes> size_in_copy(std::string_view path) const {
    const UniqueFd fd = open_beneath(copy_, path, O_PATH | O_NOFOLLOW);
    struct stat info {};
    if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
    return static_cast<Bytes>(info.st_size);
  }

  void take_finished(const Entry& entry) {
    const std::size_t index = same_source(entry);
    if (index == entries_.size() || size_in_copy(entry.path) != entry.size) return;
    entries_[index].hash = entry.hash;
    entries_[index].good_at = entry.good_at;
    entries_[index].lost_attributes = entry.lost_attributes;
    resumed_.finished[index] = true;
    resumed_.begun.erase(index);
  }

  // A copy is larger than the file until it is complete. One that was completed is not written again, nor is
  // one of a single piece: the file was larger before.
  void take_started(const Entry& entry) {
    const std::size_t index = same_source(entry);
    resumed_.begun.erase(index_of(entries_, entry.path));
    if (index == entries_.size() || piece_count(entry.size) < 2) return;
    if (size_in_copy(entry.path).value_or(0) <= entry.size) return;
    resumed_.begun[index] = KnownPieces(piece_count(entry.size));
    entries_[index].good_at = entry.good_at;  // the age of its first pieces
  }

  void take_piece(const JournalLine& line) {
    const auto begun = resumed_.begun.find(index_of(entries_, line.entry.path));
    if (begun == resumed_.begun.end() || line.piece >= begun->second.size()) return;
    begun->second[line.piece] = line.digest;
  }

  // A line "Started" is written before the file is made: the one there may be of an earlier version, with
  // bytes where this one has holes, which aren't written. A piece's line comes after its file is on the
  // drive.
  void begin_anew_without_pieces() {
    const auto has_none = [](const KnownPieces& pieces) {
      return std::ranges::none_of(pieces, [](const auto& piece) { return piece.has_value(); });
    };
    std::erase_if(resumed_.begun, [&](const auto& one) { return has_none(one.second); });
  }

  void count_pieces() {
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (resumed_.finished[i]) resumed_.bytes += entries_[i].size;
    }
    for (const auto& [index, pieces] : resumed_.begun) {
      for (std::uint64_t piece = 0; piece < pieces.size(); ++piece) {
        if (pieces[piece]) resumed_.bytes += piece_bytes(entries_[index].size, piece);
      }
    }
  }
};

}  // namespace

Resumed resume(const PartialArea& area, Entries& entries) {
  auto copy = tree_in(area.folder(), "data");
  if (copy) return Resume(area, entries, std::move(*copy)).go();
  return nothing_for(entries);
}

}  // namespace spark::staging
