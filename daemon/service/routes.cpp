#include "daemon/service/routes.hpp"

#include <algorithm>
#include <variant>

#include "base/text.hpp"
#include "daemon/service/handlers.hpp"
#include "daemon/service/members/request_members.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

using api::Answer;
using api::Request;

Answer not_found(const Request& request) {
  return api::error_answer({Errc::NotFound,
                            "no " + printable(request.method) + " /" + printable(join(request.path, "/")),
                            "docs/api.md lists every request"});
}

Answer denied(const Request& request) {
  return api::error_answer({Errc::Denied, "uid " + std::to_string(request.caller.uid) + " may not do this",
                            "use sudo: root alone may"});
}

struct Route {
  const char* method;
  const char* path;  // "/v1/volumes/{name}/up": the part in braces matches any one part
  bool root_alone = false;
};

bool has_path(const Route& route, const Request& request) {
  const auto parts = split(std::string_view(route.path).substr(1), '/');
  return std::ranges::equal(parts, request.path, [](const std::string& part, const std::string& asked) {
    return part == asked || part.starts_with('{');
  });
}

struct Endpoint {
  Route route;
  std::variant<AnswerNow*, AnswerLater*> handler;
};

// docs/openapi.yaml describes each of them.
constexpr Endpoint kEndpoints[] = {
    {{"GET", "/healthz"}, get_health},
    {{"GET", "/readyz"}, get_readiness},
    {{"GET", "/metrics"}, get_metrics},
    {{"GET", "/v1/status"}, get_status},
    {{"GET", "/v1/config"}, get_config},
    {{"POST", "/v1/reload", true}, post_reload},
    {{"POST", "/v1/plan"}, post_plan},
    {{"GET", "/v1/volumes/{name}"}, get_volumes},
    {{"POST", "/v1/volumes/{name}/up", true}, post_up},
    {{"POST", "/v1/volumes/{name}/down", true}, post_down},
    {{"POST", "/v1/volumes/{name}/take", true}, post_take},
    {{"POST", "/v1/volumes/{name}/publish", true}, post_publish},
    {{"GET", "/v1/datasets"}, get_datasets},
    {{"GET", "/v1/fleet/datasets"}, get_fleet_datasets},
    {{"POST", "/v1/stagings"}, post_staging},
    {{"POST", "/v1/datasets/{name}/verify"}, post_verify},
    {{"POST", "/v1/datasets/{name}/evict"}, post_evict},
    {{"POST", "/v1/scrubs"}, post_scrub},
    {{"POST", "/v1/cache/move", true}, post_cache_move},
    {{"POST", "/v1/cache/reset", true}, post_cache_reset},
    {{"POST", "/v1/drops"}, post_drop},
    {{"POST", "/v1/stage-outs"}, post_stage_out},
    {{"GET", "/v1/outputs"}, get_outputs},
    {{"GET", "/v1/outputs/{name}"}, get_output},
    {{"POST", "/v1/outputs/{name}/send"}, post_output},
    {{"GET", "/v1/outputs/{name}/latest"}, get_latest_output},
    {{"GET", "/v1/outputs/{name}/latest/offline"}, get_latest_output},
    {{"DELETE", "/v1/leases/{id}"}, delete_lease},
    {{"GET", "/v1/jobs"}, get_jobs},
    {{"GET", "/v1/jobs/{id}"}, get_job},
    {{"GET", "/v1/jobs/{id}/events"}, get_job_events},
    {{"DELETE", "/v1/jobs/{id}"}, delete_job},
};

}  // namespace

asio::awaitable<Answer> answer_request(const DaemonParts& daemon, Request request) {
  const auto* found = std::ranges::find_if(kEndpoints, [&](const Endpoint& endpoint) {
    return request.method == endpoint.route.method && has_path(endpoint.route, request);
  });
  if (found == std::end(kEndpoints)) co_return not_found(request);
  if (found->route.root_alone && !request.caller.may_change) co_return denied(request);
  if (const auto fits = check_members(request.body); !fits) co_return api::error_answer(fits.error());
  drop_nulls(request.body);
  if (const auto* answer_now = std::get_if<AnswerNow*>(&found->handler))
    co_return (*answer_now)(daemon, request);
  AnswerLater* const answer_later = std::get<AnswerLater*>(found->handler);
  auto answer = co_await answer_later(daemon, std::move(request));
  co_return answer;
}

}  // namespace spark
