// Copies small and large files beside each other: small ones wait for metadata, large ones for the drives.
#pragma once

#include <memory>
#include <vector>

#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/copy/resume.hpp"
#include "staging/copy/transfer/copy_context.hpp"

namespace spark::staging {

struct FilesJob {
  const CopyOptions& options;
  const Resumed& resumed;
  const Entries& entries;
  std::vector<Entry*> small, large;  // sorted by path; see is_small
};

// With one thread, one kind after the other, unless readers may wait for either.
Result<> copy_files(CopyContext& context, const FilesJob& job);

// Goes on with the pieces of the file that an earlier attempt has left.
std::unique_ptr<FileWork> work_for(const CopyContext& context, Entry& entry, const Resumed& resumed,
                                   const Entries& entries);

}  // namespace spark::staging
