// All adopted folders of this host: each is looked at every few seconds, whatever is being read of another.
#pragma once

#include <chrono>
#include <deque>
#include <filesystem>
#include <functional>
#include <vector>

#include "base/clock.hpp"
#include "base/threads.hpp"
#include "base/units.hpp"
#include "fleet/adopted/adoption.hpp"

namespace spark::fleet {

class Adoptions {
 public:
  // Between two looks at a folder. A walk that took long is followed by a pause of ten times as long, as it
  // costs the drive its time. After a first change, the folder at rest is read soon nevertheless.
  static constexpr std::chrono::seconds kBetweenLooks{5};
  static constexpr int kShareForWalks = 10;
  static constexpr std::chrono::minutes kLongestPause{10};
  // A folder with less is read in seconds, beside a larger one that takes hours.
  static constexpr Bytes kSmall = 4 * kGiB;

  Adoptions(std::vector<AdoptedFolder> folders, const std::filesystem::path& state_dir, const Clock& clock,
            const Adoption::Unmounted& unmounted = {});

  // Looks at the folders whose time has come; `on_look` is called after each.
  void look(const std::function<void()>& on_look, const StopFlag& stop);
  const std::deque<Adoption>& all() const { return all_; }

 private:
  const Clock& clock_;
  std::deque<Adoption> all_;
  std::vector<SteadyTime> next_;  // look at each
  FolderReader of_small_, of_large_;

  bool is_due(std::size_t index, SteadyTime now) const;
  void read_next();
  void read_next(FolderReader& reader, bool is_small);
};

}  // namespace spark::fleet
