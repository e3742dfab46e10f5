// Programs that use copies: with a lease, with open files, or both.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "tests/histories/copies/host/process.hpp"
#include "tests/histories/copies/world/scene.hpp"

namespace spark::histories::copies {

struct Use {
  std::string name, dataset;  // "job 3"
  std::filesystem::path path;
  std::string lease;                         // its ID; empty: none
  std::shared_ptr<Process> process;          // the holder of the lease
  std::uint64_t faults = 0;                  // of the world when it began: a lease may be lost by one
  bool can_be_recorded = true;               // its lease
  std::map<std::string, ino_t> files;        // as handed out
  std::map<std::string, std::string> bytes;  // the same
  std::vector<UniqueFd> open;                // its open files
};

class Uses {
 public:
  explicit Uses(Scene& scene) : scene_(scene) {}

  Use& begin(const std::string& dataset, const std::filesystem::path& path);
  void open_files(Use& use, std::size_t most);
  std::vector<Use>& all() { return uses_; }
  void end(std::size_t number);
  // The daemon has ended: what it knew only by itself is lost.
  void daemon_ended();

  // A user asked for it, and nothing was staged since.
  void note_evicting(const std::string& dataset) { evicting_.insert(dataset); }
  void note_staged(const std::string& dataset) { evicting_.erase(dataset); }
  void check();

 private:
  bool is_well(const Use& use);
  std::string remover(const Use& use) const;
  bool is_damaged(const Use& use, const std::string& file) const;

  Scene& scene_;
  std::vector<Use> uses_;
  unsigned begun_ = 0;
  std::set<std::string> evicting_;
};

}  // namespace spark::histories::copies
