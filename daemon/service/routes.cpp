// Every request that the daemon answers, as docs/openapi.yaml describes it.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/service/service.hpp"

namespace spark {
namespace {

using api::Answer;
using api::Request;

Answer not_found(const Request& request) {
  return api::error_answer({Errc::NotFound,
                            "no " + printable(request.method) + " /" + printable(join(request.path, "/")),
                            "docs/api.md lists every request"});
}

Answer denied(const Request& request) {
  return api::error_answer({Errc::Denied,
                            "uid " + std::to_string(request.caller.uid) + " may not change volumes",
                            "use sudo: root alone may"});
}

struct Route {
  const char* method;
  const char* path;  // "/v1/volumes/{name}/up": what stands in braces is any one part
  bool root_alone = false;
};

bool has_path(const Route& route, const Request& request) {
  const auto parts = split(std::string_view(route.path).substr(1), '/');
  return std::ranges::equal(parts, request.path, [](const std::string& part, const std::string& asked) {
    return part == asked || part.starts_with('{');
  });
}

}  // namespace

struct Service::Endpoint {
  Route route;
  Answer (Service::*answer)(const Request&);
  asio::awaitable<Answer> (Service::*later)(Request) = nullptr;  // instead, for the two that ask workers
};

std::span<const Service::Endpoint> Service::endpoints() {
  static constexpr Endpoint kEndpoints[] = {
      {{"GET", "/healthz"}, &Service::get_health},
      {{"GET", "/readyz"}, &Service::get_readiness},
      {{"GET", "/metrics"}, &Service::get_metrics},
      {{"GET", "/v1/status"}, &Service::get_status},
      {{"GET", "/v1/config"}, &Service::get_config},
      {{"POST", "/v1/reload", true}, nullptr, &Service::post_reload},
      {{"POST", "/v1/plan"}, nullptr, &Service::post_plan},
      {{"POST", "/v1/volumes/{name}/up", true}, &Service::post_up},
      {{"POST", "/v1/volumes/{name}/down", true}, &Service::post_down},
      {{"POST", "/v1/volumes/{name}/take", true}, &Service::post_take},
      {{"POST", "/v1/volumes/{name}/publish", true}, &Service::post_publish},
      {{"GET", "/v1/datasets"}, &Service::get_datasets},
      {{"POST", "/v1/stagings"}, &Service::post_staging},
      {{"POST", "/v1/datasets/{name}/verify"}, &Service::post_verify},
      {{"POST", "/v1/datasets/{name}/evict"}, &Service::post_evict},
      {{"POST", "/v1/scrubs"}, &Service::post_scrub},
      {{"DELETE", "/v1/leases/{id}"}, &Service::delete_lease},
      {{"GET", "/v1/jobs"}, &Service::get_jobs},
      {{"GET", "/v1/jobs/{id}"}, &Service::get_job},
      {{"GET", "/v1/jobs/{id}/events"}, &Service::get_job_events},
      {{"DELETE", "/v1/jobs/{id}"}, &Service::delete_job},
  };
  return kEndpoints;
}

// Whatever may take long is a job: no answer waits for more than a worker or two.
asio::awaitable<Answer> Service::answer(Request request) {
  const auto all = endpoints();
  const auto found = std::ranges::find_if(all, [&](const Endpoint& endpoint) {
    return request.method == endpoint.route.method && has_path(endpoint.route, request);
  });
  if (found == all.end()) co_return not_found(request);
  if (found->route.root_alone && !request.caller.may_change) co_return denied(request);
  if (found->later == nullptr) co_return (this->*(found->answer))(request);
  auto answer = co_await (this->*(found->later))(std::move(request));
  co_return answer;
}

}  // namespace spark
