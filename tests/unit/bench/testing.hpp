// Shared by the tests of this folder: a folder on a real disk, fixture files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace spark::bench {

namespace fs = std::filesystem;

// A new folder on the disk of the build tree, removed at the end.
class DiskFolder {
 public:
  DiskFolder() : path_(std::string(SPARK_BENCH_DISK) + "/disk-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "can't make " << path_;
  }
  DiskFolder(const DiskFolder&) = delete;
  DiskFolder& operator=(const DiskFolder&) = delete;
  ~DiskFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline std::string fixture(const std::string& name) {
  const std::string path = std::string(SPARK_BENCH_FIXTURES) + "/" + name;
  EXPECT_TRUE(fs::exists(path)) << path;
  return read_text(path);
}

// Compares with the fixture; SPARK_UPDATE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::string& name, const std::string& text) {
  if (::getenv("SPARK_UPDATE_GOLDEN") != nullptr) {
    write_text(std::string(SPARK_BENCH_FIXTURES) + "/" + name, text);
    return;
  }
  EXPECT_EQ(text, fixture(name)) << text;
}

}  // namespace spark::bench
