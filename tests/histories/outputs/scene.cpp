#include "tests/histories/outputs/scene.hpp"

#include <algorithm>
#include <cstdio>

#include "daemon/log.hpp"
#include "tests/histories/outputs/daemon.hpp"

namespace spark::histories {
namespace {

// Far from the present, so that simulated and real times of files are told apart (FileTimes).
constexpr std::chrono::seconds kStart{FileTimes::kEra + 6L * 365 * 24 * 3600};

tl::unexpected<Error> away() {
  return fail(Errc::Unavailable, std::string("volume ") + kVolume + " is lost: the target does not answer",
              std::string("`spark-stage wait ") + kVolume + "` ends when it is ready");
}

}  // namespace

Machine::~Machine() = default;

Result<outputs::VolumePlace> SharedVolume::writable_by(std::size_t host) const {
  if (!is_nfs && holder != host) {
    return fail(Errc::Refused,
                std::string("volume ") + kVolume + " is refused on this host: another host holds it",
                "send it from that host, or send it to an NFS volume");
  }
  return readable_by(host);
}

Result<outputs::VolumePlace> SharedVolume::readable_by(std::size_t host) const {
  if (is_away[host]) return away();
  if (!is_nfs && holder != host) {
    return fail(Errc::Unavailable, std::string("volume ") + kVolume + " is refused: another host holds it",
                std::string("`spark-stage wait ") + kVolume + "` ends when it is ready");
  }
  return outputs::VolumePlace{path.native(), ""};
}

Scene::Scene(std::uint64_t its_seed, Story its_story)
    : seed(its_seed), story(std::move(its_story)), time(WallTime(kStart)) {
  log::redirect([this](std::string_view sentence) {
    logged.emplace_back(sentence);
    tell("log: " + logged.back());
  });
}

Scene::~Scene() {
  log::redirect({});
}

void Scene::tell(const std::string& sentence) const {
  if (!story.is_told()) return;
  char begin[32];
  (void)std::snprintf(begin, sizeof begin, "%9.3f s  ",
                      std::chrono::duration<double>(time.elapsed()).count());
  story.tell(begin + sentence);
}

void Scene::tell(const Machine& machine, const std::string& sentence) const {
  if (story.is_told()) tell(machine.name() + ": " + sentence);
}

void Scene::broken(const std::string& oracle, const std::string& what) {
  if (!violation) violation = Violation{oracle, what};
}

void Scene::noted(const std::string& oracle, const std::string& what) {
  if (std::ranges::find(noted_, oracle, &Violation::oracle) != noted_.end()) return;
  tell("  =  " + oracle + ": " + what);
  noted_.push_back({oracle, what});
}

// Not always the first, so that the most frequent one hides no other.
std::optional<Violation> Scene::worst() const {
  if (violation || noted_.empty()) return violation;
  return noted_[seed % noted_.size()];
}

std::string in_short(const Listing& listing) {
  std::string text;
  for (const auto& [name, content] : listing) text += (text.empty() ? "" : " ") + name;
  return text.empty() ? "nothing" : text;
}

}  // namespace spark::histories
