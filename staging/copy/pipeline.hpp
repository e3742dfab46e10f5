// From a walked source to a published copy: what `copy` and the cache have in common.
#pragma once

#include <functional>
#include <optional>

#include "base/result.hpp"
#include "staging/copy/copy.hpp"
#include "staging/copy/fill.hpp"
#include "staging/copy/partial/publish.hpp"

namespace spark::staging {

struct PipelineJob {
  const Tree* source = nullptr;
  Walked walked;
  PartialArea* area = nullptr;
  std::optional<Previous> previous;  // of the same dataset: what did not change since is taken over
  const CopyOptions* options = nullptr;
  const StopFlag* stop = nullptr;
  WallTime now;
  std::function<void(const std::string& path, Bytes offset)> before_read;  // see CopyContext
};

// What they do each in their own way.
struct PipelineEnds {
  // Before the first byte: there is room for what is to be copied, or it is made.
  std::function<Result<>(const Entries& entries, const Resumed& resumed)> make_room;
  // After the last read: whether the source is still the one that was walked, and what the copy is called.
  std::function<Result<>(ManifestHeader& header)> name;
  // The sealed copy gets its place. `not_copied`: bytes of it that were taken over.
  std::function<Result<>(const Sealed& sealed, Bytes not_copied)> publish;
};

// Room, copy, flush, seal, check, publish. On an error what is finished stays for the next attempt.
Result<CopyReport> copy_walked(PipelineJob job, const PipelineEnds& ends, Monitor& monitor);

}  // namespace spark::staging
