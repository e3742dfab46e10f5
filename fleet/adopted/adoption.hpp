// Keeps an adopted folder's offer as the folder is: has it read once, and withdraws the offer as soon as a
// file has changed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "fleet/adopted/folder.hpp"
#include "fleet/adopted/folder_reading.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// Changing: its files were not at rest for long enough. Hashing: they are read, or wait for another folder
// that is. Failed: see Adoption::reason. In all of these a model's earlier revision may still be offered.
enum class AdoptionState { Changing, Hashing, Offered, Failed };
std::string_view to_string(AdoptionState state);

// Of a folder, as this host saw it.
struct SeenState {
  staging::Digest state;
  SteadyTime since;
  std::optional<SteadyTime> failed_at{};
};

// Of an offer, although the folder was in the offered state.
struct OfferEnds {
  int count = 0;
  SteadyTime stands_since{};  // the offer
};

class Adoption {
 public:
  // A file system's clock counts in steps of up to 2 s; a change within a step would not be seen.
  static constexpr std::chrono::seconds kRest{4};
  // A folder that failed is tried again, also unchanged.
  static constexpr std::chrono::minutes kAgain{10};
  // An offer of unchanged files that peers' readings end more often has failed, unless it stood for kAgain.
  static constexpr int kMostEnds = 2;

  // The mount point on the way to a path that has no file system; empty means none.
  using Unmounted = std::function<std::filesystem::path(const std::filesystem::path&)>;

  Adoption(AdoptedFolder folder, std::filesystem::path state_dir, const Clock& clock,
           Unmounted unmounted = {});

  // Walks the folder, and reads no file of it.
  void look(const StopFlag& stop);
  // Null if no file has to be read. A reading that has not begun waits for a FolderReader; the look after its
  // end makes the offer.
  const std::shared_ptr<FolderReading>& reading() const { return reading_; }
  SteadyTime changed_at() const { return seen_ ? seen_->since : SteadyTime{}; }  // as this host saw it
  int changes() const { return changes_; }  // that were seen since it was offered

  const AdoptedFolder& folder() const { return folder_; }
  AdoptionState state() const { return state_; }
  std::string reason() const;                                   // why it is not offered; names files
  const staging::Summary& summary() const { return summary_; }  // of what is offered
  std::chrono::nanoseconds cost() const { return cost_; }       // of walking the folder at the last look

 private:
  AdoptedFolder folder_;
  std::filesystem::path file_;  // see offer_file()
  const Clock& clock_;
  Unmounted unmounted_;
  AdoptionState state_ = AdoptionState::Changing;
  std::string reason_;
  staging::Summary summary_;
  std::chrono::nanoseconds cost_{0};
  std::optional<staging::Digest> offered_;  // state of the folder that the file was compared with
  OfferEnds ends_;
  std::optional<SeenState> seen_;  // since the last change
  int changes_ = 0;
  std::shared_ptr<FolderReading> reading_;

  bool is_offered(const staging::Digest& state, const staging::Entries& entries);
  bool is_of(const std::filesystem::path& offer, const staging::Entries& entries) const;
  bool has_failed(const staging::Digest& state) const;  // lately
  bool keeps_earlier(const staging::Model* now, const StopFlag& stop);
  Result<> check_place(const FolderNow& now) const;
  void fail_for_now(const Error& error);
  Result<> offer(const staging::Manifest& manifest, const staging::Digest& state);
  void end_reading(const staging::Digest& state);
  void stop_reading();
  void withdraw();
  void set(AdoptionState state, std::string reason = {});
};

}  // namespace spark::fleet
