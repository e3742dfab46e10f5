// Requests about files that jobs have written and that are sent to a volume.
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

// Of one user: each has a file in the state folder, and may wait for a volume that stays away.
constexpr std::size_t kMostTransfers = 1000;

// The last host publishes the shards, so each host must be able to write there.
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
  if (!request.caller.may_change && daemon.outputs.transfers_of(request.caller.uid) >= kMostTransfers) {
    co_return too_much_answer(std::to_string(kMostTransfers) + " outputs of this user are being sent already",
                              "wait until some have ended, or cancel some; `spark-stage jobs` shows them");
  }
  auto wanted = outputs::request_of(request.body);
  if (!wanted) co_return api::error_answer(wanted.error());
  wanted->asker = asker_of(request.caller);
  if (const auto checked = check_nodes(daemon, *wanted); !checked)
    co_return api::error_answer(checked.error());
  const auto job = co_await daemon.outputs.send(std::move(*wanted));
  co_return accepted_answer(job);
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
  auto accepted = outputs::read_accepted(request.body);
  if (!accepted) co_return api::error_answer(accepted.error());
  if (*accepted && (*accepted)->checkpoint.empty())
    co_return api::error_answer({Errc::Invalid, "written is given without its checkpoint",
                                 "repeat the members of the job's `accepted` as they are"});
  std::optional<outputs::Accepted> wanted = std::move(*accepted);
  const auto job = co_await (*output)->send_newest(std::move(wanted));
  if (job) (*job)->add_requester(request.caller.uid);  // its asker is the folder's owner
  co_return accepted_answer(job);
}

// ".../latest/offline" accepts a local one while the volume is away.
// NotFound means that there is no checkpoint yet, and a job then starts from scratch.
asio::awaitable<Answer> get_latest_output(const DaemonParts& daemon, Request request) {
  const auto output = find_watched(daemon, request.path[2]);
  if (!output) {
    Error error = output.error();
    if (error.kind == Errc::NotFound) error.kind = Errc::Invalid;
    co_return api::error_answer(error);
  }
  auto latest = co_await (*output)->latest(request.path.size() > 4);
  co_return answer_with(std::move(latest));
}

// Compares an output on a volume with the manifest published with it.
Answer verify_output(const DaemonParts& daemon, const Request& request) {
  auto name = outputs::read_output_name(request.path[2]);
  if (!name) return api::error_answer(name.error());
  return accepted_answer(
      daemon.outputs.verify(std::move(name->volume), std::move(name->path), asker_of(request.caller)));
}

}  // namespace spark
