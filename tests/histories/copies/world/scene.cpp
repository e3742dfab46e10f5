#include "tests/histories/copies/world/scene.hpp"

#include <algorithm>
#include <cstdio>
#include <regex>

#include "tests/histories/copies/host/places.hpp"
#include "tests/histories/copies/worker/simulated_system.hpp"

namespace spark::histories::copies {
namespace {

constexpr WallTime kStart{std::chrono::seconds(1'785'600'000)};  // 2026-08-01
constexpr char kVolume[] = "vol";
constexpr std::int64_t kWholeSeconds = 1'000'000'000;

DriveSizes sizes(std::mt19937_64& dice) {
  return {(768 + 256 * (dice() % 6)) * kKiB, 768 * kKiB};
}

void fill_config(config::Config& config, std::mt19937_64& dice) {
  config.cache.path = places::kCache;
  config.cache.keep_free = {};
  if (dice() % 2 == 0) config.cache.capacity.bytes = (150 + 50 * (dice() % 8)) * kKiB;
  if (dice() % 2 == 0) config.cache.scrub = std::chrono::hours(1 + dice() % 48);
  config.cache.engine = {1, 0, 64 * kKiB};  // small buffers: they cost more than the copying
}

}  // namespace

Scene::Scene(std::uint64_t seed, const Story& its_story)
    : story(its_story),
      time(kStart),
      fate{std::mt19937_64(seed), {}, 0, 0, {}, {}, {}, {}, {}},
      drives(sizes(fate.dice)) {
  simulated().namespace_for_workers = [this] { return drives.namespace_for_workers(); };
  auto& dice = fate.dice;
  fill_config(config, dice);
  const struct {
    std::string name, disk, below;
  } kDatasets[] = {{"imagenet", kVolume, "imagenet"}, {"models", "models", ""}, {"text", "nas", "text"}};
  favourite = dice() % std::size(kDatasets);
  std::uint64_t number = seed << 20;
  for (const auto& [name, disk, below] : kDatasets) {
    const auto real = drives.add_disk(disk) / below;
    std::filesystem::create_directories(real);
    const bool rounds = dice() % 3 == 0;  // to seconds, as ext3 and old NFS servers do
    auto source = std::make_unique<Source>(Source::Place{name, disk, real, Drives::mount_point(disk) / below,
                                                         rounds ? kWholeSeconds : 1, disk == kVolume});
    config::Dataset dataset;
    dataset.name = name;
    if (source->place().is_volume) dataset.volume = disk;
    dataset.path = dataset.volume.empty() ? source->place().path.native() : below;
    config.datasets[name] = dataset;
    const std::size_t files = 2 + dice() % 5;
    for (std::size_t i = 0; i < files; ++i) {
      const std::string folder = i % 3 == 2 ? "part/" : "";
      SourceFile file{new_content(++number, 1 + dice() % (40 * kKiB)), dice() % 3 == 0 ? "n" : ""};
      source->add(folder + "f" + std::to_string(i), std::move(file), time.now(), other_wall());
    }
    sources[name] = std::move(source);
  }
}

Source* Scene::source(const std::string& dataset) {
  const auto found = sources.find(dataset);
  return found == sources.end() ? nullptr : found->second.get();
}

WallTime Scene::other_wall() const {
  return kStart + std::chrono::duration_cast<WallTime::duration>(time.elapsed());
}

bool Scene::is_calm_for(Duration time_without_trouble) const {
  return time.now() - std::max({trouble.last, fate.last_fault}) > time_without_trouble;
}

void Scene::violate(const std::string& oracle, const std::string& what) {
  if (!violation) violation = Violation{oracle, what};
}

void Scene::note(Rarity rarity, const std::string& oracle, const std::string& what) {
  if (noted && rarity <= noted_rarity) return;
  tell("  (" + oracle + ": " + what + ")");
  noted = Violation{oracle, what};
  noted_rarity = rarity;
}

void Scene::tell(const std::string& sentence) const {
  if (!story.is_told()) return;
  char when[32];
  const double seconds = std::chrono::duration<double>(time.elapsed()).count();
  std::snprintf(when, sizeof when, "%9.3f s  ", seconds);
  // Files that are written under another name first have a worker's process ID in it, another one in each
  // run.
  static const std::regex kUnfinished(R"(\.\d+\.new\b)");
  story.tell(when + std::regex_replace(sentence, kUnfinished, ".PID.new"));
}

}  // namespace spark::histories::copies
