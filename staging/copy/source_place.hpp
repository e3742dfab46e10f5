// Whether a source can be what an earlier copy was made from.
#pragma once

#include "base/result.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Notes on which file system the source is, before it is read: later that may be unmounted, and in no list
// any more. Unavailable if it was unmounted just now.
Result<> note_file_system(Tree& source);

// A mount point without its file system is an empty folder of another one, and a copy of it would replace a
// good one. Refused if the source has no file any more, or if it is on another file system than at the
// earlier copy (`then`). That had files, or only symlinks (`had`): then one link of the source is enough.
Result<> check_source_place(const Tree& source, const Walked& walked, const ManifestHeader& then,
                            EntryType had = EntryType::File);

}  // namespace spark::staging
