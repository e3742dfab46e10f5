#include <algorithm>

#include "base/text.hpp"
#include "bench/files/existing_files.hpp"
#include "bench/report/run_folder.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"
#include "cli/verbs/bench/bench.hpp"
#include "daemon/config/parse.hpp"

namespace spark::cli {
namespace {

constexpr Duration kCountingTime{60'000};

// Counted apart: the folder may be on a path that does not answer.
Result<> count_files(Context& context, const std::string& folder, bench::AskedFor& asked) {
  const auto options = bench::on_path("counting the files of " + printable(folder),
                                      kCountingTime + Duration(5'000), &context.stop);
  const auto counted = run_apart(options, [&]() -> Result<json::value> {
    // Without links, as the paths that are measured.
    std::error_code error;
    const std::string resolved = std::filesystem::canonical(folder, error).string();
    if (error)
      return fail_errno(error.value(), "looking at " + printable(folder),
                        "give the dataset's own folder, or its size");
    bench::WalkLimits limits;
    limits.files = 1;
    limits.entries = 50'000'000;
    limits.depth = 64;
    limits.time = kCountingTime;
    const bench::FoundFiles found = bench::find_files(resolved, limits);
    return json::object{{"folder", resolved},
                        {"bytes", found.all_bytes},
                        {"files", found.all_files},
                        {"complete", found.complete}};
  });
  if (!counted) return counted.take_error();
  const json::object& answer = counted->as_object();
  asked.folder = get_text(answer, "folder");
  asked.dataset_bytes = get_count(answer, "bytes");
  asked.dataset_files = get_count(answer, "files");
  if (asked.dataset_files == 0) {
    return fail(Errc::NotFound, "there is no file in " + printable(folder),
                "give the dataset's own folder, or its size");
  }
  if (!get_bool(answer, "complete").value_or(false)) {
    tell(context, "spark-stage: " + printable(folder) + " is larger than could be counted in a minute: " +
                      format_bytes(asked.dataset_bytes) + " is taken for its size");
  }
  return {};
}

// NAME from the configuration, or VOLUME:PATH.
Result<std::string> folder_of(Context& context, const std::string& name) {
  const auto config = config::load(context.config_file);
  if (!config) return fail_with(config.error(), "looking for the dataset '" + printable(name) + "'");
  const auto dataset = config::find_dataset(*config, name);
  if (!dataset) return dataset.take_error();
  if (dataset->volume.empty()) return dataset->path;
  const config::Volume* volume = config::find_volume(*config, dataset->volume);
  if (volume == nullptr) {
    return fail(Errc::NotFound,
                "there is no volume '" + printable(dataset->volume) + "' in the configuration");
  }
  return (volume->mount / dataset->path).string();
}

// The dataset's copy in the daemon's cache, and the space it could free. Without a daemon: unknown.
void ask_cache(Context& context, const std::string& name, bench::AskedFor& asked) {
  const auto status = call(*context.client, {"GET", "/v1/status", {}});
  const auto list = call(*context.client, {"GET", "/v1/datasets", {}});
  const json::object* cache = status ? get_object(*status, "cache") : nullptr;
  if (cache == nullptr || !list) return;
  const auto number = [](const json::object& object, const char* key) {
    return std::max<std::int64_t>(0, get_int(object, key).value_or(0));
  };
  std::int64_t leased = 0;
  for (const json::object& dataset : objects_in(*list, "datasets")) {
    if (get_string(dataset, "name") == name && get_string(dataset, "state") == "ready") {
      asked.is_staged = true;
      asked.dataset_bytes = static_cast<Bytes>(number(dataset, "bytes"));
    }
    if (!objects_in(dataset, "leases").empty()) leased += number(dataset, "bytes");
  }
  const std::int64_t evictable = std::max<std::int64_t>(0, number(*cache, "used_bytes") - leased);
  asked.cache_room = static_cast<Bytes>(std::max<std::int64_t>(
      1, std::min(number(*cache, "capacity_bytes") - leased, number(*cache, "free_bytes") + evictable)));
}

// The list of peers may name this host too, by an address that it listens at.
unsigned fleet_hosts(const Context& context) {
  const auto config = config::load(context.config_file);
  if (!config || config->fleet.listen.empty()) return 0;
  const auto& fleet = config->fleet;
  const bool names_itself = std::ranges::any_of(fleet.peers, [&](const auto& peer) {
    return std::ranges::find_first_of(peer.second, fleet.listen, {}, &nvmetcp::Portal::address,
                                      &nvmetcp::Portal::address) != peer.second.end();
  });
  return static_cast<unsigned>(fleet.peers.size()) + (names_itself ? 0 : 1);
}

// `asked` may be of a kept run, with the facts of that run's dataset.
void name_dataset(const std::string& given, bench::AskedFor& asked) {
  asked.dataset = given;
  asked.folder.clear();
  asked.dataset_bytes = asked.cache_room = 0;
  asked.dataset_files = 0;
  asked.is_staged = false;
}

Result<> ask_dataset(Context& context, const std::string& given, bench::AskedFor& asked) {
  name_dataset(given, asked);
  if (!given.empty() && given[0] >= '0' && given[0] <= '9') {
    if (const auto size = parse_bytes(given); size && *size > 0) {
      asked.dataset_bytes = *size;
      return {};
    }
  }
  if (given.starts_with('/') || given.starts_with("./")) return count_files(context, given, asked);
  const auto folder = folder_of(context, given);
  if (!folder) return folder.take_error();
  ask_cache(context, given, asked);
  // The folder of a model may hold others too, but its copy does not.
  if (asked.loads_model && asked.dataset_bytes > 0) {
    asked.folder = *folder;
    return {};
  }
  return count_files(context, *folder, asked);
}

}  // namespace

Result<std::string> dataset_folder(Context& context, const std::string& name) {
  if (!name.starts_with('/') && !name.starts_with("./")) return folder_of(context, name);
  const auto folder = absolute_path(name);
  if (!folder) return folder.take_error();
  return folder->string();
}

void BenchQuestion::add_to(Verb& verb) {
  verb.option("--dataset", "NAME", dataset, "of the configuration; or VOLUME:PATH, a folder, a\nsize: 1.2TB");
  verb.count("--epochs", epochs, {1, 1'000'000}, "passes over the dataset (30)");
  verb.parsed("--demand", "RATE", demand, parse_rate_with_unit, "the job's read rate: 3.2GB/s");
  verb.option("--like", "JOB", like,
              "a job of MLPerf Storage: unet3d, 8xretinanet; as\nwhat-if cosmoflow, resnet50; llama3-8b, "
              "llama3-70b:\nits checkpoints; model-load: loading weights");
  verb.count("--nodes", nodes, {1, 10'000}, "hosts that read from the target at once (1)");
  verb.parsed("--target-memory", "SIZE", target_memory, parse_bytes, "the target's memory, a possible cache");
}

Result<> ask(Context& context, const BenchQuestion& question, bench::AskedFor& asked) {
  if (question.demand > 0 && !question.like.empty()) {
    return fail(Errc::Invalid, "--demand and --like both give the job's read rate", "give one of them");
  }
  if (question.demand > 0)
    asked.demand = {static_cast<double>(question.demand), "", bench::ReadOrder::Unknown, 0};
  if (!question.like.empty()) {
    asked.checkpoint = bench::checkpoint_like(question.like);
    asked.loads_model = question.like == bench::kModelLoad;
  }
  if (!question.like.empty() && asked.checkpoint == 0 && !asked.loads_model) {
    auto demand = bench::demand_like(question.like);
    if (!demand) return fail_with(demand.error(), "--like");
    asked.demand = *demand;
  }
  if (question.epochs > 0) asked.epochs = question.epochs;
  if (question.nodes > 0) asked.nodes = question.nodes;
  if (asked.fleet_hosts == 0) asked.fleet_hosts = fleet_hosts(context);
  if (question.target_memory) asked.target_memory = *question.target_memory;
  return question.dataset.empty() ? Result<>() : ask_dataset(context, question.dataset, asked);
}

Result<std::vector<bench::PathUnderTest>> configured_paths(Context& context) {
  const auto status = call(*context.client, {"GET", "/v1/status", {}});
  if (!status) {
    Error error = status.error();
    error.what = "no path was given, and the daemon can't be asked for its volumes: " + error.what;
    error.hint = "give paths: spark-stage bench nvme-tcp=/mnt/a nfs=/mnt/b local=/var/tmp";
    return fail(std::move(error));
  }
  std::vector<bench::PathUnderTest> paths;
  for (const json::object& volume : objects_in(*status, "volumes")) {
    const std::string name = get_shown(volume, "name");
    const std::string state = get_string(volume, "state").value_or("unknown");
    if (state == "ready") {
      paths.push_back({name, get_text(volume, "mount")});
    } else {
      tell(context, "spark-stage: " + name + " is left out: it is " + printable(state));
    }
  }
  const json::object* cache = get_object(*status, "cache");
  const std::string cache_path = cache == nullptr ? "" : get_text(*cache, "path");
  if (!cache_path.empty()) paths.push_back({"local", cache_path});
  if (paths.empty()) {
    return fail(Errc::Unavailable, "no volume is ready and there is no cache: nothing to measure",
                "`spark-stage status` says why; or give paths: spark-stage bench nfs=/mnt/b local=/var/tmp");
  }
  return paths;
}

std::filesystem::path runs_folder(const Context& context, const std::string& given) {
  if (given.empty()) return bench::default_runs_folder(context.is_root);
  return absolute_path(given).value_or(given);  // where the current folder is gone, opening it tells
}

}  // namespace spark::cli
