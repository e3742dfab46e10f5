// The simulated hosts' drives and the volume: small file systems in memory, in a mount namespace of this
// program, so that nothing of the computer is touched.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::histories {

// A file or folder with everything in it: the text of each file by its path inside, "" for the root; a
// folder's path ends with "/", and a link's text begins with "-> ".
using Content = std::map<std::string, std::string>;
// The entries of a folder by name, as far as they are readable.
using Listing = std::map<std::string, Content>;

Content content_of(const std::filesystem::path& path);
// Without hidden entries. Empty if there is no folder.
Listing listing_of(const std::filesystem::path& folder);
// None if it is no link.
std::string link_at(const std::filesystem::path& path);

// Once for the program: makes the namespace. An error says why the system does not permit it.
Result<> prepare_disks();

// The drive of that name, empty: at /mnt/NAME. Mounted once and emptied later, since an unmount takes longer
// than a history. An exception if it can't be made.
std::filesystem::path empty_disk(const std::string& name, std::size_t megabytes);

void write_text(const std::filesystem::path& file, const std::string& text);
void append_text(const std::filesystem::path& file, const std::string& text);

}  // namespace spark::histories
