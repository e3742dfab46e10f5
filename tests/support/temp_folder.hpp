// A folder for one test, removed with its content.
#pragma once

#include <stdlib.h>
#include <sys/mount.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace spark::test {

class TempFolder {
 public:
  TempFolder() {
    std::string name = std::filesystem::temp_directory_path() / "spark-test-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TempFolder() {
    detach_mounts();
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view below) const { return path_ / below; }

 private:
  // What a failed test has left mounted, the newest first.
  void detach_mounts() const {
    std::ifstream table("/proc/self/mountinfo");
    std::vector<std::string> below;
    for (std::string id, parent, device, root, point, rest;
         table >> id >> parent >> device >> root >> point && std::getline(table, rest);) {
      // The kernel writes a blank as \040.
      for (std::size_t at = 0; (at = point.find('\\', at)) != std::string::npos; ++at)
        point.replace(at, 4, 1, static_cast<char>(std::stoi(point.substr(at + 1, 3), nullptr, 8)));
      if (point.starts_with(path_.native() + '/')) below.push_back(point);
    }
    for (; !below.empty(); below.pop_back()) ::umount2(below.back().c_str(), MNT_DETACH);
  }

  std::filesystem::path path_;
};

}  // namespace spark::test
