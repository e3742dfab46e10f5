// Whether a source can be what an earlier copy was made from.
#pragma once

#include "base/result.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::staging {

// Notes on which file system the source is, before it is read: later that may be unmounted, and in no list
// any more. Unavailable if it was unmounted just now.
Result<> note_file_system(Tree& source);

// The content of an earlier copy, which a source must not lose: files, or symlinks alone. Folder: it has
// neither.
Result<EntryType> most_in(ManifestReader& earlier);
Result<EntryType> most_in(const std::filesystem::path& manifest);

// A mount point without its file system is an empty folder of another one, and a copy of it would replace a
// good one. Refused if the source has no file any more, or if it is on another file system than at the
// earlier copy (`then`). If that had only symlinks (`had`), or if it is not known, one link is enough.
Result<> check_source_place(const Tree& source, const Walked& walked, const ManifestHeader& then,
                            EntryType had = EntryType::File);

}  // namespace spark::staging
