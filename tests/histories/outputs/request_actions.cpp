#include "tests/histories/outputs/request_actions.hpp"

#include <filesystem>

namespace spark::histories {
namespace {

namespace fs = std::filesystem;
using SendAnswer = Result<std::shared_ptr<spark::Job>>;

constexpr Duration kPatience{15 * 60'000};

}  // namespace

void RequestActions::ask_latest_of(Machine& machine) {
  if (!machine.daemon || !machine.daemon->output()) return;
  const auto answer = std::make_shared<std::optional<Result<json::object>>>();
  const auto output = machine.daemon->output();
  std::function<void(Result<json::object>)> done = [answer](Result<json::object> latest) {
    *answer = std::move(latest);
  };
  const Oracles::Before before = hosts_.oracles().before(machine);
  machine.daemon->ask<Result<json::object>>(output->latest(), std::move(done));
  if (!scene_.time.run_until([&] { return answer->has_value(); }, kPatience))
    return scene_.broken("latest-hangs", "`latest` on " + machine.name() + " does not end");
  const Result<json::object>& latest = **answer;
  scene_.tell(machine, "`latest`: " + (latest ? json::serialize(*latest) : latest.error().message()));
  hosts_.oracles().check_latest(machine, latest, before);
}

void RequestActions::ask_latest(const Dice& dice) {
  ask_latest_of(hosts_.chosen(dice[0]));
}

void RequestActions::send_newest(const Dice& dice) {
  Machine& one = hosts_.chosen(dice[0]);
  if (!one.daemon || !one.daemon->output()) return;
  scene_.tell(one, std::string("`stage-out ") + kOutput + "`");
  std::function<void(SendAnswer)> done = [this, &one](const SendAnswer& job) {
    if (!job) scene_.tell(one, "`stage-out` fails: " + job.error().message());
  };
  const auto output = one.daemon->output();  // until it has begun
  one.daemon->ask<SendAnswer>(output->send_newest(), std::move(done));
}

void RequestActions::send_by_hand(const Dice& dice) {
  Machine& one = hosts_.chosen(dice[0]);
  if (!one.daemon) return;
  const std::string name = "export-" + std::to_string(++exports_);
  const fs::path source = one.disk / name;
  std::error_code error;
  fs::create_directory(source, error);
  write_text(source / "model.onnx", name);
  const Listing there = listing_of(scene_.published());
  outputs::StageOutRequest request;
  request.volume = kVolume;
  request.source = source.native();
  request.path = std::string(kOutput) + "/" + name;
  const unsigned kind = dice[1] % 4;
  if (kind == 0) request.path = "other/" + name;
  if (kind == 1 && !there.empty())
    request.path =
        std::string(kOutput) + "/" + std::next(there.begin(), dice[2] % there.size())->first + "/" + name;
  if (kind >= 2 || there.empty()) scene_.truth.exports.insert(name);
  request.asker.uid = 0;
  if (dice[2] % 16 == 0) request.max_rate = 100'000;
  scene_.tell(one, "a person asks `stage-out " + request.source + " " + request.destination() + "`" +
                       (request.max_rate > 0 ? " with --max-rate, which takes an hour" : ""));
  std::function<void(SendAnswer)> done = [this, &one](const SendAnswer& job) {
    if (!job) scene_.tell(one, "`stage-out` fails: " + job.error().message());
  };
  one.daemon->ask<SendAnswer>(one.daemon->stage_outs().send(std::move(request)), std::move(done));
}

void RequestActions::reload(const Dice& dice) {
  config::Output& settings = scene_.settings;
  settings.keep = dice[0] % 4;
  settings.keep_local = dice[1] % 3;
  settings.keep_every = dice[2] % 3 == 0 ? 300 : 0;
  scene_.truth.last_reload = scene_.now();
  scene_.tell("the configuration is changed: keep " + std::to_string(settings.keep) + ", keep_local " +
              std::to_string(settings.keep_local) + ", keep_every " + std::to_string(settings.keep_every));
  for (const auto& one : scene_.machines) {
    if (one->daemon) one->daemon->apply();
  }
}

void RequestActions::wait(const Dice& dice) {
  constexpr std::array<unsigned, 4> kSeconds = {5, 15, 60, 180};
  hosts_.run_for(Duration(kSeconds[dice[0] % kSeconds.size()] * 1'000));
}

}  // namespace spark::histories
