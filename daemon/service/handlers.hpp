// The handlers listed in routes.cpp, by subject. `request.path[2]` is the part in braces in a route.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/api/server.hpp"
#include "daemon/service/parts.hpp"

namespace spark {

using AnswerNow = api::Answer(const DaemonParts& daemon, const api::Request& request);
// Calls workers first.
using AnswerLater = boost::asio::awaitable<api::Answer>(const DaemonParts& daemon, api::Request request);

// callers.cpp
std::string process_in_words(pid_t pid);  // "pid 12 (python)"
std::string user_in_words(uid_t uid);     // ", uid 1000": the end of a lease's holder, also after a restart
Asker asker_of(const api::Caller& caller);

// daemon_handlers.cpp
AnswerNow get_health, get_readiness, get_metrics, get_status, get_config;
AnswerLater post_reload, post_plan;

// volume_handlers.cpp
AnswerNow get_volumes, post_up, post_down, post_take, post_publish;

// dataset_handlers.cpp
AnswerNow post_staging, post_scrub, post_cache_move, post_cache_reset, post_drop;
AnswerLater get_datasets, get_fleet_datasets, post_verify, post_evict, delete_lease;

// output_handlers.cpp
AnswerNow get_outputs, verify_output;
AnswerLater post_stage_out, get_output, post_output, get_latest_output;

// job_handlers.cpp
// Whether the caller may end the asker's job: the same user, the user of its scheduler's job, or root.
boost::asio::awaitable<bool> may_end(const DaemonParts& daemon, api::Caller caller, Asker asker);
AnswerNow get_jobs;
AnswerLater get_job, get_job_events, delete_job;

}  // namespace spark
