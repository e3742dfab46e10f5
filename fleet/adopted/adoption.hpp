// Keeps an adopted folder's offer as the folder is: hashes it once, and withdraws the offer as soon as a file
// has changed.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "fleet/adopted/folder.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// Changing: its files were not at rest for long enough. Failed: see Adoption::reason.
enum class AdoptionState { Changing, Hashing, Offered, Failed };
std::string_view to_string(AdoptionState state);

class Adoption {
 public:
  // A file system's clock counts in steps of up to 2 s; a change within a step would not be seen.
  static constexpr std::chrono::seconds kRest{4};
  // What failed is tried again, also unchanged.
  static constexpr std::chrono::minutes kAgain{10};

  Adoption(AdoptedFolder folder, std::filesystem::path state_dir, const Clock& clock);

  // `on_change` is called when the state changes, also while this runs: a folder is read for minutes.
  void look(const std::function<void()>& on_change, const StopFlag& stop);

  const AdoptedFolder& folder() const { return folder_; }
  AdoptionState state() const { return state_; }
  const std::string& reason() const { return reason_; }         // why it is not offered; names files
  const staging::Summary& summary() const { return summary_; }  // of what is offered
  std::chrono::nanoseconds cost() const { return cost_; }       // of walking the folder at the last look

 private:
  AdoptedFolder folder_;
  std::filesystem::path file_;  // see offer_file()
  const Clock& clock_;
  AdoptionState state_ = AdoptionState::Changing;
  std::string reason_;
  staging::Summary summary_;
  std::chrono::nanoseconds cost_{0};
  std::optional<staging::Digest> offered_;  // state of the folder that the file was compared with
  struct Seen {
    staging::Digest state;
    SteadyTime since;
    std::optional<SteadyTime> failed_at{};
  };
  std::optional<Seen> seen_;  // since the last change

  bool is_offered(const staging::Digest& state, const staging::Entries& entries);
  bool is_of(const std::filesystem::path& offer, const staging::Entries& entries) const;
  Result<> adopt(FolderNow now, const StopFlag& stop);
  void withdraw();
  void set(AdoptionState state, std::string reason, const std::function<void()>& on_change);
};

}  // namespace spark::fleet
