#include "fleet/adopted/adoption.hpp"

#include <sys/stat.h>

#include <array>

#include "base/text.hpp"
#include "fleet/adopted/offer_file.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {
namespace {

constexpr char kChanging[] = "its files have changed; they are read once they rest";
constexpr std::array<std::string_view, 4> kWords = {"changing", "hashing", "offered", "failed"};

}  // namespace

std::string_view to_string(AdoptionState state) {
  return kWords[static_cast<std::size_t>(state)];
}

Adoption::Adoption(AdoptedFolder folder, std::filesystem::path state_dir, const Clock& clock)
    : folder_(std::move(folder)),
      file_(offer_file(state_dir, folder_.dataset)),
      clock_(clock),
      reason_("it has not been looked at yet") {}

void Adoption::look(const std::function<void()>& on_change, const StopFlag& stop) {
  const SteadyTime began = clock_.steady();
  auto now = look_at(folder_, stop);
  cost_ = clock_.steady() - began;
  if (!now) {
    withdraw();
    seen_.reset();
    return set(AdoptionState::Failed, now.error().message(), on_change);
  }
  const staging::Entries& entries = now->walked.walked.entries;
  const staging::Digest state = state_of(entries);
  if (is_offered(state, entries)) return set(AdoptionState::Offered, "", on_change);
  withdraw();
  const SteadyTime time = clock_.steady();
  if (!seen_ || seen_->state != state) seen_ = Seen{state, time};
  if (time - seen_->since < kRest) return set(AdoptionState::Changing, kChanging, on_change);
  if (seen_->failed_at && time - *seen_->failed_at < kAgain) return;
  set(AdoptionState::Hashing, "its files are being read", on_change);
  const auto adopted = adopt(std::move(*now), stop);
  if (adopted) return set(AdoptionState::Offered, "", on_change);
  withdraw();
  seen_->failed_at = clock_.steady();
  const bool has_changed = adopted.error().kind == Errc::Unavailable;
  if (has_changed) seen_.reset();
  set(has_changed ? AdoptionState::Changing : AdoptionState::Failed, adopted.error().message(), on_change);
}

Result<> Adoption::adopt(FolderNow now, const StopFlag& stop) {
  const staging::Digest before = state_of(now.walked.walked.entries);
  auto manifest = hash_folder(folder_, std::move(now), stop);
  const auto after = look_at(folder_, stop);
  // Also where a digest differs: of a file that is being written.
  if (!after || state_of(after->walked.walked.entries) != before) return fail(Errc::Unavailable, kChanging);
  if (!manifest) return manifest.take_error();
  std::error_code failed;
  std::filesystem::create_directories(file_.parent_path(), failed);  // else the write says why
  ::chmod(file_.parent_path().c_str(), 0700);                        // the names of all files are in there
  if (auto written = staging::write_manifest(file_, *manifest); !written) return written;
  std::filesystem::remove(aside_of(file_), failed);
  summary_ = staging::summary_of(manifest->entries);
  offered_ = before;
  return {};
}

// The file is read only if something else than this class may have written it.
bool Adoption::is_offered(const staging::Digest& state, const staging::Entries& entries) {
  const bool is_there = number_of(file_) != 0;
  if (is_there && offered_ == state) return true;
  if (is_there && is_of(file_, entries)) {
    offered_ = state;
  } else if (const auto aside = aside_of(file_); !is_there && is_of(aside, entries)) {
    std::error_code failed;
    std::filesystem::rename(aside, file_, failed);
    if (failed) return false;
    offered_ = state;
  } else {
    return false;
  }
  if (auto offer = read_offer(file_, definition_of(folder_))) summary_ = std::move(offer->summary);
  return true;
}

bool Adoption::is_of(const std::filesystem::path& offer, const staging::Entries& entries) const {
  auto manifest = staging::ManifestReader::open(offer);
  return manifest && manifest->header().definition == definition_of(folder_) &&
         staging::is_same_source(*manifest, entries);
}

void Adoption::withdraw() {
  offered_.reset();
  if (number_of(file_) != 0) set_aside(file_);
}

void Adoption::set(AdoptionState state, std::string reason, const std::function<void()>& on_change) {
  const bool is_same = state_ == state && reason_ == reason;
  state_ = state;
  reason_ = std::move(reason);
  if (!is_same && on_change) on_change();
}

}  // namespace spark::fleet
