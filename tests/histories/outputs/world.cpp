#include "tests/histories/outputs/world.hpp"

#include <algorithm>
#include <filesystem>

#include "daemon/config/parse.hpp"

namespace spark::histories {
namespace {

namespace fs = std::filesystem;
using config::Complete;

constexpr std::size_t kMegabytes = 8;
// The longest pause of an output between two attempts, and a sending.
constexpr Duration kSettles{11 * 60'000};

template <class T>
T one_of(std::mt19937_64& random, std::initializer_list<T> choices) {
  return choices.begin()[random() % choices.size()];
}

// What is said wrongly, and does no harm to a checkpoint.
bool is_mild(const std::string& oracle) {
  return oracle.starts_with("unsent-") || oracle.starts_with("backlog-");
}

Naming naming_of(std::uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x6e616d65);
  return one_of(random, {Naming::Plain, Naming::Plain, Naming::Plain, Naming::SingleFile, Naming::SingleFile,
                         Naming::Orbax, Naming::NeMo});
}

}  // namespace

OutputsWorld::OutputsWorld(std::uint64_t seed, const Story& story)
    : scene_(seed, story), job_(scene_, naming_of(seed)) {
  libc().next_uuid = 1;
  libc().boots = 1;
  file_times().forget_all();
  std::mt19937_64 random(seed);
  const auto hosts = one_of<std::size_t>(random, {1, 1, 1, 1, 2, 2, 2, 3});
  for (const ActionRow& row : rows()) {
    if (row.is_optional && random() % 2 == 0) left_out_.insert(row.name);
  }
  scene_.volume.is_nfs = random() % 2 == 0;
  add_hosts(hosts);
  choose_settings(random);
  for (const auto& one : scene_.machines) start(*one);
}

OutputsWorld::~OutputsWorld() {
  for (const auto& one : scene_.machines) one->daemon = nullptr;
  file_times().forget_all();
}

void OutputsWorld::add_hosts(std::size_t count) {
  scene_.volume.path = empty_disk("volume", kMegabytes);
  const auto follow = [](const fs::path& disk, const Clock& clock) {
    struct stat info {};
    (void)::stat(disk.c_str(), &info);
    file_times().follow(
        info.st_dev, [&clock] { return std::chrono::nanoseconds(clock.wall().time_since_epoch()).count(); });
  };
  follow(scene_.volume.path, scene_.time);
  scene_.volume.is_away.resize(count);
  scene_.volume.changed.resize(count, scene_.now());
  scene_.truth.here.resize(count);
  for (std::size_t index = 0; index < count; ++index) {
    auto one = std::make_unique<Machine>(scene_.time, index);
    one->disk = empty_disk(one->name(), kMegabytes);
    fs::create_directories(one->job_folder());
    fs::create_directories(one->disk / "state" / "outputs");
    follow(one->disk, *one);
    one->boot_s = std::chrono::floor<std::chrono::seconds>(one->wall().time_since_epoch()).count() - 3600;
    scene_.machines.push_back(std::move(one));
  }
}

void OutputsWorld::choose_settings(std::mt19937_64& random) {
  config::Output& settings = scene_.settings;
  settings.name = settings.to = kOutput;
  settings.volume = kVolume;
  settings.complete = one_of(random, {Complete::Rename, Complete::Rename, Complete::Dcp,
                                      Complete::HuggingFace, Complete::HuggingFace, Complete::DeepSpeed,
                                      Complete::Marker, Complete::Marker, Complete::OnRequest});
  settings.keep = one_of(random, {0U, 1U, 2U, 3U});
  settings.keep_local = one_of(random, {0U, 1U, 1U, 2U});
  settings.keep_every = one_of(random, {0U, 0U, 0U, 300U});
  kept_by_job_ = one_of(random, {0U, 0U, 2U, 3U});
  if (settings.complete == Complete::Marker) settings.marker = "DONE";
  const std::size_t hosts = scene_.machines.size();
  const bool may_share = hosts > 1 && scene_.volume.is_nfs && settings.complete == Complete::Marker;
  if (may_share && random() % 2 == 0) settings.nodes = static_cast<std::uint32_t>(hosts);
  const auto number = [](std::uint32_t value) {
    return value == 0 ? std::string("all") : std::to_string(value);
  };
  scene_.tell(std::to_string(hosts) + " hosts; " +
              (scene_.volume.is_nfs ? "an NFS volume" : "a volume that one host holds") + "; complete: " +
              config::to_string(settings.complete) + ", keep " + number(settings.keep) + ", keep_local " +
              number(settings.keep_local) + ", keep_every " + std::to_string(settings.keep_every) +
              ", nodes " + std::to_string(settings.nodes) + "; the job keeps " + number(kept_by_job_));
}

void OutputsWorld::start(Machine& machine) {
  machine.daemon = std::make_unique<Daemon>(scene_, machine, workers_.hooks_for(machine));
  scene_.time.run_ready();
}

void OutputsWorld::run_for(Duration duration) {
  // In parts: what is shown is compared with the truth at many moments.
  for (Duration left = duration; left > Duration(0) && !scene_.violation;) {
    const Duration part = std::min(left, Duration(5'000));
    scene_.time.run_for(part);
    left -= part;
    for (const auto& one : scene_.machines) oracles_.check_facts(*one);
  }
}

void OutputsWorld::run_job(std::uint32_t most, std::uint32_t die) {
  constexpr std::array<unsigned, 5> kPauses = {20, 200, 700, 2'000, 6'000};
  std::mt19937_64 random(die);
  for (std::uint32_t done = 0; done < most && !scene_.violation && job_.go_on(); ++done)
    run_for(Duration(kPauses[random() % kPauses.size()] + 1));
}

std::vector<Action> OutputsWorld::actions() {
  std::vector<Action> all;
  for (const ActionRow& row : rows()) all.push_back({row.name, row.weight});
  return all;
}

const std::vector<OutputsWorld::ActionRow>& OutputsWorld::rows() {
  using W = OutputsWorld;
  static const std::vector<ActionRow> all = {
      {"save", 14, &W::save, false},
      {"save-in-part", 5, &W::save_in_part, false},
      {"save-again", 3, &W::save_again, false},
      {"kill-job", 4, &W::kill_job, false},
      {"resume-older", 2, &W::resume_older, true},
      {"move-job", 2, &W::move_job, true},
      {"remove-one", 2, &W::remove_one, true},
      {"touch", 3, &W::touch, true},
      {"write-beside", 3, &W::write_beside, true},
      {"link-latest", 1, &W::link_latest, true},
      {"set-clock", 2, &W::set_clock, true},
      {"lose-volume", 3, &W::lose_volume, true},
      {"return-volume", 4, &W::return_volume, false},
      {"fill-volume", 2, &W::fill_volume, true},
      {"free-volume", 3, &W::free_volume, false},
      {"take-volume-over", 2, &W::take_volume_over, true},
      {"kill-daemon", 2, &W::kill_daemon, true},
      {"cut-power", 1, &W::cut_power, true},
      {"start-daemon", 4, &W::start_daemon, false},
      {"doom-worker", 4, &W::doom_worker, true},
      {"slow-worker", 3, &W::slow_worker, true},
      {"latest", 6, &W::ask_latest, false},
      {"send-newest", 2, &W::send_newest, true},
      {"send-by-hand", 2, &W::send_by_hand, true},
      {"reload", 2, &W::reload, true},
      {"wait", 8, &W::wait, false},
  };
  return all;
}

void OutputsWorld::take(const Step& step) {
  constexpr std::array<unsigned, 6> kPauses = {100, 1'000, 4'000, 8'000, 15'000, 30'000};
  const auto row =
      std::ranges::find(rows(), step.action, [](const ActionRow& one) { return std::string(one.name); });
  if (row == rows().end() || left_out_.contains(step.action)) return;
  (this->*row->act)(step.dice);
  run_for(Duration(kPauses[step.dice[3] % kPauses.size()]));
}

std::optional<Violation> OutputsWorld::check() {
  return scene_.violation;
}

void OutputsWorld::end_faults() {
  scene_.tell("all faults end");
  job_.die();
  free_volume({});
  scene_.volume.hangs = false;
  for (const auto& one : scene_.machines) {
    one->fate = {};
    scene_.volume.is_away[one->index] = false;
    note_volume(one->index);
    if (!one->daemon) start(*one);
  }
}

std::optional<Violation> OutputsWorld::wait_until_settled() {
  std::optional<Violation> left;
  const auto is_settled = [&] {
    left.reset();
    for (const auto& one : scene_.machines) {
      if (!left && scene_.volume.is_reached_by(one->index)) left = oracles_.why_not_settled(*one);
    }
    return scene_.violation.has_value() || !left;
  };
  // Looked at every few seconds: the folders are read each time.
  for (Duration waited{0}; waited < kSettles && !is_settled(); waited += Duration(5'000))
    scene_.time.run_for(Duration(5'000));
  return scene_.violation ? scene_.violation : left;
}

std::optional<Violation> OutputsWorld::settle() {
  end_faults();
  run_for(Duration(20'000));
  // It becomes well, and stays so.
  for (unsigned round = 0; round < 2; ++round) {
    auto left = wait_until_settled();
    if (left && !is_mild(left->oracle)) return left;
    if (left) scene_.noted(left->oracle, left->what);
    run_for(Duration(20'000));
  }
  for (const auto& one : scene_.machines) {
    if (scene_.volume.is_reached_by(one->index) && !scene_.violation) ask_latest_of(*one);
  }
  return scene_.worst();
}

}  // namespace spark::histories
