// The catalog as a file: lost, damaged and repaired, or locked by another program.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tests/histories/copies/host/process.hpp"

namespace spark::histories::copies {

class CatalogFile {
 public:
  static bool exists();
  static void lose();
  void damage();
  void repair();
  void lock();
  void unlock() { locked_by_.reset(); }

 private:
  std::map<std::string, std::string> sound_;  // its files before the damage
  std::unique_ptr<Process> locked_by_;
};

}  // namespace spark::histories::copies
