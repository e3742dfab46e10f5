// Files that need copy_file, beside a pass over many others that does not copy them: what a reader waits for
// is copied at once, the rest after the pass.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/lanes/piece_limit.hpp"
#include "staging/copy/transfer/copy_context.hpp"
#include "staging/files/io/io.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Thread-safe.
class LeftFiles {
 public:
  using WorkFor = std::function<std::unique_ptr<FileWork>(Entry&)>;

  // The context outlives it.
  LeftFiles(const CopyContext& context, IoKind io, WorkFor work_for)
      : context_(context), io_(io), work_for_(std::move(work_for)) {}

  void add(Entry* entry);
  // A reader waits for this unit of the view. No effect if the file is not one of them.
  void want(Entry* entry, std::uint64_t unit);
  // Copies those that readers wait for. `limit`: of the whole run; none means no units before their pieces.
  Result<> copy_wanted(const PieceLimit* limit);
  bool is_copying() const;
  std::vector<Entry*> take_rest();  // sorted by path

 private:
  const CopyContext& context_;
  IoKind io_;
  WorkFor work_for_;
  mutable std::mutex mutex_;  // guards everything below
  std::set<Entry*> waiting_{}, copying_{};
  std::set<const Entry*> grown_{};  // of those that wait: no reader gets them any more
  std::deque<Entry*> first_{};      // of those that wait
  std::map<const Entry*, std::deque<std::uint64_t>> wanted_{};

  Result<> copy(Entry& entry, const PieceLimit* limit);
  bool has_grown(const Entry& entry) const;  // a small one is none any more
  std::optional<std::uint64_t> take_wanted(const Entry& entry);
};

}  // namespace spark::staging
