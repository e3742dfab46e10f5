#include "tests/histories/outputs/world.hpp"

#include <algorithm>

#include "daemon/config/parse.hpp"

namespace spark::histories {
namespace {

using config::Complete;

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

struct ActionRow {
  const char* name;
  unsigned weight;
  bool is_optional;  // a seed leaves half of these out, so that no defect hides all others
};

constexpr std::array kActions = {
    ActionRow{"save", 14, false},         ActionRow{"save-in-part", 5, false},
    ActionRow{"save-again", 3, false},    ActionRow{"kill-job", 4, false},
    ActionRow{"resume-older", 2, true},   ActionRow{"move-job", 4, true},
    ActionRow{"remove-one", 2, true},     ActionRow{"touch", 3, true},
    ActionRow{"write-beside", 3, true},   ActionRow{"link-latest", 1, true},
    ActionRow{"set-clock", 2, true},      ActionRow{"lose-volume", 4, true},
    ActionRow{"return-volume", 4, false}, ActionRow{"fill-volume", 2, true},
    ActionRow{"free-volume", 3, false},   ActionRow{"take-volume-over", 2, true},
    ActionRow{"kill-daemon", 2, true},    ActionRow{"cut-power", 1, true},
    ActionRow{"start-daemon", 4, false},  ActionRow{"doom-worker", 4, true},
    ActionRow{"slow-worker", 3, true},    ActionRow{"latest", 8, false},
    ActionRow{"send-newest", 2, true},    ActionRow{"send-by-hand", 2, true},
    ActionRow{"reload", 2, true},         ActionRow{"wait", 8, false},
};

Naming naming_of(std::uint64_t seed) {
  std::mt19937_64 random(seed ^ 0x6e616d65);
  const Naming naming = one_of(random, {Naming::Plain, Naming::Plain, Naming::Plain, Naming::SingleFile,
                                        Naming::SingleFile, Naming::Orbax, Naming::NeMo});
  const auto die = random() % 12;  // the histories found before keep their names
  const bool are_two = naming == Naming::SingleFile && (die == 4 || die == 9);
  return are_two ? Naming::TwoFiles : naming;
}

}  // namespace

OutputsWorld::OutputsWorld(std::uint64_t seed, const Story& story)
    : scene_(seed, story), job_(scene_, naming_of(seed)) {
  bind_actions();
  libc().next_uuid = 1;
  libc().boots = 1;
  file_times().forget_all();
  std::mt19937_64 random(seed);
  const auto hosts = one_of<std::size_t>(random, {1, 1, 1, 1, 2, 2, 2, 3});
  for (const ActionRow& row : kActions) {
    if (row.is_optional && random() % 2 == 0) left_out_.insert(row.name);
  }
  scene_.volume.is_nfs = random() % 2 == 0;
  hosts_.add(hosts);
  choose_settings(random);
  for (const auto& one : scene_.machines) hosts_.start(*one);
}

std::vector<Action> OutputsWorld::actions() {
  std::vector<Action> all;
  for (const ActionRow& row : kActions) all.push_back({row.name, row.weight});
  return all;
}

void OutputsWorld::bind_actions() {
  acts_["save"] = [this](const Dice& dice) { job_actions_.save(dice); };
  acts_["save-in-part"] = [this](const Dice& dice) { job_actions_.save_in_part(dice); };
  acts_["save-again"] = [this](const Dice& dice) { job_actions_.save_again(dice); };
  acts_["kill-job"] = [this](const Dice& dice) { job_actions_.kill_job(dice); };
  acts_["resume-older"] = [this](const Dice& dice) { job_actions_.resume_older(dice); };
  acts_["move-job"] = [this](const Dice& dice) { job_actions_.move_job(dice); };
  acts_["remove-one"] = [this](const Dice& dice) { job_actions_.remove_one(dice); };
  acts_["touch"] = [this](const Dice& dice) { job_actions_.touch(dice); };
  acts_["write-beside"] = [this](const Dice& dice) { job_actions_.write_beside(dice); };
  acts_["link-latest"] = [this](const Dice& dice) { job_actions_.link_latest(dice); };
  acts_["set-clock"] = [this](const Dice& dice) { host_actions_.set_clock(dice); };
  acts_["lose-volume"] = [this](const Dice& dice) { host_actions_.lose_volume(dice); };
  acts_["return-volume"] = [this](const Dice& dice) { host_actions_.return_volume(dice); };
  acts_["fill-volume"] = [this](const Dice& dice) { host_actions_.fill_volume(dice); };
  acts_["free-volume"] = [this](const Dice& dice) { host_actions_.free_volume(dice); };
  acts_["take-volume-over"] = [this](const Dice& dice) { host_actions_.take_volume_over(dice); };
  acts_["kill-daemon"] = [this](const Dice& dice) { host_actions_.kill_daemon(dice); };
  acts_["cut-power"] = [this](const Dice& dice) { host_actions_.cut_power(dice); };
  acts_["start-daemon"] = [this](const Dice& dice) { host_actions_.start_daemon(dice); };
  acts_["doom-worker"] = [this](const Dice& dice) { host_actions_.doom_worker(dice); };
  acts_["slow-worker"] = [this](const Dice& dice) { host_actions_.slow_worker(dice); };
  acts_["latest"] = [this](const Dice& dice) { request_actions_.ask_latest(dice); };
  acts_["send-newest"] = [this](const Dice& dice) { request_actions_.send_newest(dice); };
  acts_["send-by-hand"] = [this](const Dice& dice) { request_actions_.send_by_hand(dice); };
  acts_["reload"] = [this](const Dice& dice) { request_actions_.reload(dice); };
  acts_["wait"] = [this](const Dice& dice) { request_actions_.wait(dice); };
}

OutputsWorld::~OutputsWorld() {
  for (const auto& one : scene_.machines) one->daemon = nullptr;
  file_times().forget_all();
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
  job_actions_.kept_by_job = one_of(random, {0U, 0U, 2U, 3U});
  if (settings.complete == Complete::Marker) settings.marker = "DONE";
  const std::size_t hosts = scene_.machines.size();
  const bool may_share = hosts > 1 && scene_.volume.is_nfs && settings.complete == Complete::Marker;
  if (may_share && random() % 2 == 0) settings.nodes = static_cast<std::uint32_t>(hosts);
  const auto number = [](std::uint32_t value) {
    return value == 0 ? std::string("all") : std::to_string(value);
  };
  scene_.tell(std::to_string(hosts) + " hosts; " +
              (scene_.volume.is_nfs ? "an NFS volume" : "a volume that one host holds") +
              "; complete: " + config::to_string(settings.complete) + ", keep " + number(settings.keep) +
              ", keep_local " + number(settings.keep_local) + ", keep_every " +
              std::to_string(settings.keep_every) + ", nodes " + std::to_string(settings.nodes) +
              "; the job keeps " + number(job_actions_.kept_by_job));
}

void OutputsWorld::take(const Step& step) {
  constexpr std::array<unsigned, 6> kPauses = {100, 1'000, 4'000, 8'000, 15'000, 30'000};
  const auto act = acts_.find(step.action);
  if (act == acts_.end() || left_out_.contains(step.action)) return;
  act->second(step.dice);
  hosts_.run_for(Duration(kPauses[step.dice[3] % kPauses.size()]));
}

std::optional<Violation> OutputsWorld::check() {
  return scene_.violation;
}

void OutputsWorld::end_faults() {
  scene_.tell("all faults end");
  job_.die();
  host_actions_.free_volume({});
  scene_.volume.hangs = false;
  for (const auto& one : scene_.machines) {
    one->fate = {};
    if (scene_.volume.is_away[one->index]) host_actions_.note_volume(one->index);
    scene_.volume.is_away[one->index] = false;
    if (!one->daemon) hosts_.start(*one);
  }
}

std::optional<Violation> OutputsWorld::wait_until_settled() {
  std::optional<Violation> left;
  const auto is_settled = [&] {
    left.reset();
    for (const auto& one : scene_.machines) {
      if (!left && scene_.volume.is_reached_by(one->index)) left = hosts_.oracles().why_not_settled(*one);
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
  hosts_.run_for(Duration(20'000));
  // It becomes well, and stays so.
  for (unsigned round = 0; round < 2; ++round) {
    auto left = wait_until_settled();
    if (left && !is_mild(left->oracle)) return left;
    if (left) {
      scene_.noted(left->oracle, left->what);
      break;
    }
    hosts_.run_for(Duration(20'000));
  }
  for (const auto& one : scene_.machines) {
    if (scene_.volume.is_reached_by(one->index) && !scene_.violation) request_actions_.ask_latest_of(*one);
  }
  return scene_.worst();
}

}  // namespace spark::histories
