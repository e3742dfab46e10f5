// The parts of a copy without content of their own: folders, symlinks, and further names of hard-linked
// files.
#pragma once

#include <vector>

#include "base/threads.hpp"
#include "staging/copy/copy.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// Accessible to this user only until they are finished; existing folders are no error.
Result<> make_folders(const Tree& copy, const Entries& entries);

// Called after the files are copied. A further name shares all metadata of its first name. Where the file
// system has no more links, it becomes a file of its own (Entry::is_apart).
Result<> make_links(const Tree& source, const Tree& copy, Entries& entries, const StopFlag& stop);

}  // namespace spark::staging
