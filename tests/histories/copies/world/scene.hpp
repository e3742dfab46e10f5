// What all parts of the world share: time, dice, drives, sources, and the truth about the copies.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/config/model.hpp"
#include "tests/histories/copies/host/drives.hpp"
#include "tests/histories/copies/host/rot.hpp"
#include "tests/histories/copies/host/source.hpp"
#include "tests/histories/copies/worker/history_runner.hpp"
#include "tests/histories/engine/history.hpp"
#include "tests/histories/engine/virtual_time.hpp"

namespace spark::histories::copies {

// The trouble that the world makes now, and when it last made some.
struct Trouble {
  bool is_state_full = false, is_drive_full = false, is_catalog_damaged = false, is_catalog_locked = false;
  std::uint64_t catalogs_lost = 0;
  SteadyTime last{};  // of any: an answer that began before may be an error

  bool has_catalog() const { return !is_state_full && !is_catalog_damaged && !is_catalog_locked; }
};

// The newest copy of a dataset, as the product said.
struct LastGood {
  std::filesystem::path path;
  std::uint64_t generation = 0;
  std::uint64_t version = 0;  // of the source
  Bytes bytes = 0;            // on the drive
  std::uint64_t catalogs_lost = 0;
};

enum class Rarity { Common, Usual, Rare };

struct Scene {
  Scene(std::uint64_t seed, const Story& its_story);

  Source* source(const std::string& dataset);
  // By the clock of the sources' hosts: it never jumps.
  WallTime other_wall() const;
  void violate(const std::string& oracle, const std::string& what);  // keeps the first
  // One that leaves the world as it was: the history goes on, and may find a rarer one. Of several the
  // rarest is kept.
  void note(Rarity rarity, const std::string& oracle, const std::string& what);
  void tell(const std::string& sentence) const;
  void trouble_now() { trouble.last = time.now(); }
  bool is_calm_for(Duration time_without_trouble) const;

  const Story& story;
  VirtualTime time;
  Fate fate;
  Drives drives;
  config::Config config;
  std::map<std::string, std::unique_ptr<Source>> sources;  // by dataset
  std::size_t favourite = 0;                               // the one that most happens to
  std::map<std::string, LastGood> last_good;               // by dataset
  std::set<std::string> known;  // datasets that the catalog has had, since it was lost last
  Rot rot;
  Trouble trouble;
  std::optional<Violation> violation, noted;
  Rarity noted_rarity = Rarity::Common;
};

}  // namespace spark::histories::copies
