// What a copy has besides files' content: folders, symlinks, further names of hard-linked files.
#pragma once

#include <vector>

#include "base/threads.hpp"
#include "staging/copy/copy.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Open to this user alone until they are finished; those that are there already are no error.
Result<> make_folders(const Tree& copy, const Entries& entries);

// When the files are there. A further name gets all that its first name has.
Result<> make_links(const Tree& source, const Tree& copy, Entries& entries, const StopFlag& stop);

}  // namespace spark::staging
