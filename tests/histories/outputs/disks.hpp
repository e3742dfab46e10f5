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

class Disks {
 public:
  // Once for the program; an error says why the system does not permit it.
  static Result<> prepare();

  Disks() = default;
  Disks(const Disks&) = delete;
  Disks& operator=(const Disks&) = delete;
  ~Disks();

  // An empty file system at /mnt/NAME, or an exception.
  std::filesystem::path add(const std::string& name, std::size_t megabytes);

 private:
  std::vector<std::string> mounted_;
};

void write_text(const std::filesystem::path& file, const std::string& text);
void append_text(const std::filesystem::path& file, const std::string& text);

}  // namespace spark::histories
