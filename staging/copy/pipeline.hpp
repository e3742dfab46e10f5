// From a walked source to a published copy: the steps shared by `copy` and the cache.
#pragma once

#include <functional>

#include "base/result.hpp"
#include "staging/copy/copy.hpp"
#include "staging/copy/fill.hpp"
#include "staging/copy/partial/publish.hpp"

namespace spark::staging {

// The steps in which `copy` and the cache differ.
struct PipelineEnds {
  // Before the first byte: checks that there is space for the data to be copied, or frees it.
  std::function<Result<>(const Entries& entries, const Resumed& resumed)> make_room;
  // After the last read: corrects files of the copy, and their entries. May be empty.
  std::function<Result<>(const Tree& copy, Entries& entries)> correct{};
  // After the last read: fills in the copy's name.
  std::function<void(ManifestHeader& header)> name;
  // Checks the content of the sealed copy, before it gets its name. May be empty.
  std::function<Result<>()> check_content{};
  // Reading the copy back has found a difference, which may be of a file that it took over. May be empty.
  std::function<void()> found_damage{};
  // Moves the sealed copy to its place. `not_copied`: bytes of it that were taken over.
  std::function<Result<>(const Sealed& sealed, Bytes not_copied)> publish;
};

// Space, copy, flush, seal, check, publish. After an error, finished files stay for the next attempt.
Result<CopyReport> copy_walked(CopyJob job, const PipelineEnds& ends, Monitor& monitor);

}  // namespace spark::staging
