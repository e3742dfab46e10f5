// Requests about what jobs have written, on its way to a volume.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/handlers.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

using api::Answer;
using api::Request;

constexpr std::size_t kMostTransfers = 1000, kLongestPath = 4096;  // each has a file in the state folder
constexpr std::int64_t kMostKept = 1 << 20, kMostNodes = 10'000;

// Of VOLUME:PATH; the path has no component that leads elsewhere.
struct OutputName {
  std::string volume, path;
};

Result<OutputName> read_output_name(const std::string& text) {
  const std::size_t colon = text.find(':');
  std::vector<std::string> parts;
  for (std::string& part : split(colon == std::string::npos ? "" : text.substr(colon + 1), '/')) {
    if (!part.empty() && part != ".") parts.push_back(std::move(part));
  }
  const bool is_valid = colon != 0 && !parts.empty() && text.size() <= kLongestPath &&
                        text.find('\0') == std::string::npos && std::ranges::find(parts, "..") == parts.end();
  if (!is_valid) {
    return fail(Errc::Invalid, "'" + printable(text) + "' is not VOLUME:PATH of an output",
                "for example: checkpoints:run7/step-1000");
  }
  if (parts.back().starts_with('.')) {
    return fail(Errc::Invalid, "the name of '" + printable(text) + "' begins with a dot",
                "choose another name: spark-stage keeps its own files under such names");
  }
  return OutputName{text.substr(0, colon), join(parts, "/")};
}

Result<> read_limits(const json::object& body, outputs::StageOutRequest& wanted) {
  const auto keep = get_int(body, "keep");
  if (body.contains("keep") && (!keep || *keep < 1 || *keep > kMostKept))
    return fail(Errc::Invalid, "keep is not a number of copies", "1 keeps the newest alone");
  wanted.keep = static_cast<unsigned>(keep.value_or(0));
  const auto nodes = get_int(body, "nodes");
  if (body.contains("nodes") && (!nodes || *nodes < 1 || *nodes > kMostNodes))
    return fail(Errc::Invalid, "nodes is not a number of hosts");
  wanted.nodes = static_cast<unsigned>(nodes.value_or(0));
  const auto rate = get_int(body, "max_rate");
  if (body.contains("max_rate") && (!rate || *rate <= 0))
    return fail(Errc::Invalid, "max_rate is not a rate in bytes per second");
  wanted.max_rate = static_cast<Bytes>(rate.value_or(0));
  return {};
}

Result<outputs::StageOutRequest> read_stage_out(const Request& request) {
  outputs::StageOutRequest wanted;
  wanted.source = get_string(request.body, "source").value_or("");
  const bool is_path = wanted.source.starts_with('/') && wanted.source.size() <= kLongestPath &&
                       wanted.source.find('\0') == std::string::npos;
  if (!is_path) {
    return fail(Errc::Invalid, "source is not an absolute path",
                "name the file or folder that is to be sent");
  }
  auto name = read_output_name(get_string(request.body, "destination").value_or(""));
  if (!name) return name.take_error();
  wanted.volume = std::move(name->volume);
  wanted.path = std::move(name->path);
  if (auto read = read_limits(request.body, wanted); !read) return read.take_error();
  wanted.asker = asker_of(request.caller);
  return wanted;
}

// Shards are published by whichever host is last, so that each has to be able to write there.
Result<> check_nodes(const DaemonParts& daemon, const outputs::StageOutRequest& wanted) {
  const config::Volume* volume = config::find_volume(daemon.config.current(), wanted.volume);
  if (wanted.nodes <= 1 || volume == nullptr || volume->nfs) return {};
  return fail(Errc::Refused,
              "volume " + wanted.volume +
                  " has one writer at a time, so that no other host can send its shards there",
              "send shards to an NFS volume, or gather them on the host that writes " + wanted.volume);
}

Result<std::shared_ptr<outputs::WatchedOutput>> find_watched(const DaemonParts& daemon,
                                                             const std::string& name) {
  const auto settings = config::find_output(daemon.config.current(), name);
  if (!settings) return settings.take_error();
  auto output = daemon.output_watches.find(name);
  if (!output) return fail(Errc::Unavailable, "output " + name + " is being configured", "try again");
  return output;
}

}  // namespace

asio::awaitable<Answer> post_stage_out(const DaemonParts& daemon, Request request) {
  if (!request.caller.may_change && daemon.outputs.transfers().size() >= kMostTransfers) {
    Answer answer = api::error_answer({Errc::Unavailable,
                                       std::to_string(kMostTransfers) + " outputs are being sent already",
                                       "wait until some have ended; `spark-stage jobs` shows them"});
    answer.status = 429;
    co_return answer;
  }
  auto wanted = read_stage_out(request);
  if (!wanted) co_return api::error_answer(wanted.error());
  if (const auto checked = check_nodes(daemon, *wanted); !checked)
    co_return api::error_answer(checked.error());
  const auto job = co_await daemon.outputs.send(std::move(*wanted));
  co_return job ? accepted_answer(*job) : api::error_answer(job.error());
}

Answer get_outputs(const DaemonParts& daemon, const Request& /*request*/) {
  return ok_answer(json::object{{"outputs", daemon.output_watches.list()}});
}

asio::awaitable<Answer> get_output(const DaemonParts& daemon, Request request) {
  const auto output = find_watched(daemon, request.path[2]);
  if (!output) co_return api::error_answer(output.error());
  auto shown = co_await (*output)->look_now();
  co_return answer_with(std::move(shown));
}

asio::awaitable<Answer> post_output(const DaemonParts& daemon, Request request) {
  const auto output = find_watched(daemon, request.path[2]);
  if (!output) co_return api::error_answer(output.error());
  if (get_bool(request.body, "final").value_or(false)) {
    const auto taken = (*output)->job_ended();
    co_return taken ? ok_answer(json::object{{"accepted", true}}) : api::error_answer(taken.error());
  }
  const auto job = co_await (*output)->send_newest();
  co_return job ? accepted_answer(*job) : api::error_answer(job.error());
}

asio::awaitable<Answer> get_latest_output(const DaemonParts& daemon, Request request) {
  const auto output = find_watched(daemon, request.path[2]);
  if (!output) co_return api::error_answer(output.error());
  auto latest = co_await (*output)->latest();
  co_return answer_with(std::move(latest));
}

// An output on a volume: compared with the manifest that was published with it.
Answer verify_output(const DaemonParts& daemon, const Request& request) {
  auto name = read_output_name(request.path[2]);
  if (!name) return api::error_answer(name.error());
  const auto job =
      daemon.outputs.verify(std::move(name->volume), std::move(name->path), asker_of(request.caller));
  return job ? accepted_answer(*job) : api::error_answer(job.error());
}

}  // namespace spark
