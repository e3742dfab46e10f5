// Copies files through the lanes, with the number and size of requests that shape_of() chooses.
#pragma once

#include <memory>
#include <vector>

#include "staging/copy/lanes/file_work.hpp"
#include "staging/copy/lanes/options.hpp"
#include "staging/copy/resume.hpp"
#include "staging/copy/transfer/copy_context.hpp"

namespace spark::staging {

// Of which files a run takes the wishes of readers (see Viewer::take_wanted): nothing else copies those.
enum class Wishes { OfLarge, OfSmall, OfAll };

// Sets `moved` of the context while it runs.
Result<> copy_large_files(CopyContext& context, const CopyOptions& options, const std::vector<Entry*>& files,
                          const Resumed& resumed, const Entries& entries, Wishes wishes);

// Goes on with the pieces of the file that an earlier attempt has left.
std::unique_ptr<FileWork> work_for(const CopyContext& context, Entry& entry, const Resumed& resumed,
                                   const Entries& entries);

}  // namespace spark::staging
