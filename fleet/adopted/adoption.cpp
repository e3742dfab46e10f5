#include "fleet/adopted/adoption.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "fleet/adopted/offer_file.hpp"
#include "fleet/adopted/verify_folder.hpp"
#include "staging/copy/source_place.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {
namespace {

constexpr char kChanging[] = "its files have changed; they are read once they rest";
constexpr char kReading[] = "its files are being read";
constexpr char kWaiting[] = "its files are read next; those of another folder are being read";
constexpr char kEnded[] =
    "peers got it, and some of its files could not be sent, although none has changed - `dmesg` shows errors "
    "of the drive; it is offered again in ten minutes";
constexpr char kAnotherPlace[] =
    "mount its drive; if it is meant to be so, take `adopt` out of the dataset, reload, and write it again";
constexpr std::array<std::string_view, 4> kWords = {"changing", "hashing", "offered", "failed"};

std::string in_words(const FolderNow& now, const std::vector<std::string>& damaged) {
  const Error error = damaged_content(now.tree, damaged);
  return error.message();
}

}  // namespace

std::string_view to_string(AdoptionState state) {
  return kWords[static_cast<std::size_t>(state)];
}

Adoption::Adoption(AdoptedFolder folder, std::filesystem::path state_dir, const Clock& clock,
                   Unmounted unmounted)
    : folder_(std::move(folder)),
      file_(offer_file(state_dir, folder_.dataset)),
      clock_(clock),
      unmounted_(std::move(unmounted)),
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
    const bool is_kept = keeps_earlier(nullptr, stop);
    if (!is_kept) withdraw();
    stop_reading();
    seen_.reset();
    ends_.count = 0;
    return set(AdoptionState::Failed,
               now.error().message() + (is_kept ? "; peers get the revision before it" : ""));
  }
  const staging::Entries& entries = now->walked.walked.entries;
  const staging::Digest state = state_of(entries);
  if (const auto damaged = damaged_in(file_, entries); !damaged.empty()) {
    withdraw();
    stop_reading();
    return set(AdoptionState::Failed, in_words(*now, damaged));
  }
  const SteadyTime time = clock_.steady();
  const bool has_ended = offered_ == state && !version_of(file_).is_there();
  if (has_ended && time - std::exchange(ends_.stands_since, time) > kAgain) ends_.count = 0;
  if (has_ended && ++ends_.count > kMostEnds) {
    ends_.count = 0;
    offered_.reset();
    seen_ = SeenState{state, time, time};
    return set(AdoptionState::Failed, kEnded);
  }
  if (is_offered(state, entries)) {
    stop_reading();
    return set(AdoptionState::Offered);
  }
  if (!keeps_earlier(&now->walked, stop)) withdraw();
  if (!seen_ || seen_->state != state) {
    seen_ = SeenState{state, time};
    ++changes_;
  }
  if (reading_ && reading_->state != state) stop_reading();
  if (reading_ && was_read) return end_reading(state);
  if (reading_ || has_failed(state)) return;
  if (time - seen_->since < kRest) return set(AdoptionState::Changing, kChanging);
  if (auto place = check_place(*now); !place) return fail_for_now(place.error());
  reading_ = std::make_shared<FolderReading>(folder_, entries, notes_of(file_));
  set(AdoptionState::Hashing, kWaiting);
}

bool Adoption::has_failed(const staging::Digest& state) const {
  return seen_ && seen_->state == state && seen_->failed_at && clock_.steady() - *seen_->failed_at < kAgain;
}

// A download names a model's newer revision hours before it has its files. `now`: null if that can't be
// walked.
bool Adoption::keeps_earlier(const staging::Model* now, const StopFlag& stop) {
  auto offered = folder_.model ? staging::ManifestReader::open(file_)
                               : Result<staging::ManifestReader>(fail(Errc::NotFound, "it has no revisions"));
  const auto record = offered ? staging::parse_model_record(offered->header().model) : std::nullopt;
  if (!record || record->revision.empty() || (now != nullptr && now->record.revision == record->revision))
    return false;
  const auto then = look_at_offered(folder_, *offered, stop);
  return then && then->is_same;
}

// Nothing but a person's word makes another folder of it: peers would replace their copies of this one.
Result<> Adoption::check_place(const FolderNow& now) const {
  if (const auto point = unmounted_ ? unmounted_(folder_.path) : ""; !point.empty())
    return fail(Errc::Refused, "nothing is mounted at " + shown_path(point),
                "mount its drive; if the folder is meant to be there without it, give its line in /etc/fstab "
                "`noauto`");
  auto last = last_offer(file_);
  if (!last) {
    const bool is_empty = std::ranges::none_of(now.walked.walked.entries, [](const staging::Entry& one) {
      return one.type != staging::EntryType::Folder;
    });
    return is_empty ? fail(Errc::Refused, now.tree.shown("") + " has no file", "mount its drive")
                    : Result<>();
  }
  const auto had = staging::most_in(*last);
  if (!had) return had.take_error();
  auto checked = staging::check_source_place(now.tree, now.walked.walked, last->header(), *had);
  if (!checked) checked.error().hint = kAnotherPlace;
  return checked;
}

void Adoption::fail_for_now(const Error& error) {
  seen_->failed_at = clock_.steady();
  set(AdoptionState::Failed, error.message());
}

// The folder has the state that it had before the reading.
void Adoption::end_reading(const staging::Digest& state) {
  const auto ended = std::exchange(reading_, nullptr);
  const Result<> offered =
      ended->manifest ? offer(*ended->manifest, state) : Result<>(ended->manifest.take_error());
  if (offered) return set(AdoptionState::Offered);
  fail_for_now(offered.error());
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
  std::filesystem::remove(aside_of(file_), failed);
  ends_.count = 0;
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
  } else if (const auto aside = aside_of(file_); !is_there && !has_failed(state) && is_of(aside, entries)) {
    if (!take_back(file_, entries)) return false;
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
  if (state == AdoptionState::Offered && state_ != state) ends_.stands_since = clock_.steady();
  state_ = state;
  reason_ = std::move(reason);
  if (state == AdoptionState::Offered) changes_ = 0;
}

}  // namespace spark::fleet
