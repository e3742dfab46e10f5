#include "fleet/adopted/adoption.hpp"

#include <sys/stat.h>

#include <array>
#include <utility>

#include "base/text.hpp"
#include "fleet/adopted/offer_file.hpp"
#include "fleet/adopted/verify_folder.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {
namespace {

constexpr char kChanging[] = "its files have changed; they are read once they rest";
constexpr char kReading[] = "its files are being read";
constexpr char kWaiting[] = "its files are read next; those of another folder are being read";
constexpr std::array<std::string_view, 4> kWords = {"changing", "hashing", "offered", "failed"};

std::string in_words(const FolderNow& now, const std::vector<std::string>& damaged) {
  const Error error = damaged_content(now.tree, damaged);
  return error.message();
}

}  // namespace

std::string_view to_string(AdoptionState state) {
  return kWords[static_cast<std::size_t>(state)];
}

Adoption::Adoption(AdoptedFolder folder, std::filesystem::path state_dir, const Clock& clock)
    : folder_(std::move(folder)),
      file_(offer_file(state_dir, folder_.dataset)),
      clock_(clock),
      reason_("it has not been looked at yet") {}

std::string Adoption::reason() const {
  return reading_ && reading_->has_begun ? kReading : reason_;
}

void Adoption::look(const StopFlag& stop) {
  const SteadyTime began = clock_.steady();
  // Asked before the walk: a reading that ends during it is compared with the next one.
  const bool was_read = reading_ && reading_->has_ended;
  auto now = look_at(folder_, stop);
  cost_ = clock_.steady() - began;
  if (!now) {
    withdraw();
    stop_reading();
    seen_.reset();
    return set(AdoptionState::Failed, now.error().message());
  }
  const staging::Entries& entries = now->walked.walked.entries;
  const staging::Digest state = state_of(entries);
  if (const auto damaged = damaged_in(file_, entries); !damaged.empty()) {
    withdraw();
    stop_reading();
    return set(AdoptionState::Failed, in_words(*now, damaged));
  }
  if (is_offered(state, entries)) {
    stop_reading();
    return set(AdoptionState::Offered);
  }
  withdraw();
  const SteadyTime time = clock_.steady();
  if (!seen_ || seen_->state != state) {
    seen_ = Seen{state, time};
    ++changes_;
  }
  if (reading_ && reading_->state != state) stop_reading();
  if (reading_ && was_read) return end_reading(state);
  if (reading_) return;
  if (time - seen_->since < kRest) return set(AdoptionState::Changing, kChanging);
  if (seen_->failed_at && time - *seen_->failed_at < kAgain) return;
  reading_ = std::make_shared<FolderReading>(folder_, std::move(*now), notes_of(file_));
  set(AdoptionState::Hashing, kWaiting);
}

// The folder has the state that it had before the reading.
void Adoption::end_reading(const staging::Digest& state) {
  const auto ended = std::exchange(reading_, nullptr);
  const Result<> offered =
      ended->manifest ? offer(*ended->manifest, state) : Result<>(ended->manifest.take_error());
  if (offered) return set(AdoptionState::Offered);
  withdraw();
  seen_->failed_at = clock_.steady();
  set(AdoptionState::Failed, offered.error().message());
}

void Adoption::stop_reading() {
  if (reading_) reading_->stop = true;
  reading_.reset();
}

Result<> Adoption::offer(const staging::Manifest& manifest, const staging::Digest& state) {
  std::error_code failed;
  std::filesystem::create_directories(file_.parent_path(), failed);  // else the write says why
  ::chmod(file_.parent_path().c_str(), 0700);                        // the names of all files are in there
  if (auto written = staging::write_manifest(file_, manifest); !written) return written;
  for (const auto& rest : {aside_of(file_), notes_of(file_)}) std::filesystem::remove(rest, failed);
  summary_ = staging::summary_of(manifest.entries);
  offered_ = state;
  return {};
}

// The file is read only if something else than this class may have written it.
bool Adoption::is_offered(const staging::Digest& state, const staging::Entries& entries) {
  const bool is_there = version_of(file_).is_there();
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
  if (version_of(file_).is_there()) set_aside(file_);
}

void Adoption::set(AdoptionState state, std::string reason) {
  state_ = state;
  reason_ = std::move(reason);
  if (state == AdoptionState::Offered) changes_ = 0;
}

}  // namespace spark::fleet
