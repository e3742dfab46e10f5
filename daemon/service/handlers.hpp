// The handlers listed in routes.cpp, by subject. `request.path[2]` is the part in braces in a route.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "daemon/api/server.hpp"
#include "daemon/service/parts.hpp"

namespace spark {

// callers.cpp
std::string process_in_words(pid_t pid);  // "pid 12 (python)"
std::string user_in_words(uid_t uid);     // ", uid 1000": the end of a lease's holder, also after a restart
Asker asker_of(const api::Caller& caller);

// daemon_handlers.cpp
api::Answer get_health(const DaemonParts& daemon, const api::Request& request);
api::Answer get_readiness(const DaemonParts& daemon, const api::Request& request);
api::Answer get_metrics(const DaemonParts& daemon, const api::Request& request);
api::Answer get_status(const DaemonParts& daemon, const api::Request& request);
api::Answer get_config(const DaemonParts& daemon, const api::Request& request);
boost::asio::awaitable<api::Answer> post_reload(const DaemonParts& daemon, api::Request request);
boost::asio::awaitable<api::Answer> post_plan(const DaemonParts& daemon, api::Request request);

// volume_handlers.cpp
api::Answer get_volumes(const DaemonParts& daemon, const api::Request& request);
api::Answer post_up(const DaemonParts& daemon, const api::Request& request);
api::Answer post_down(const DaemonParts& daemon, const api::Request& request);
api::Answer post_take(const DaemonParts& daemon, const api::Request& request);
api::Answer post_publish(const DaemonParts& daemon, const api::Request& request);

// dataset_handlers.cpp
boost::asio::awaitable<api::Answer> get_datasets(const DaemonParts& daemon, api::Request request);
boost::asio::awaitable<api::Answer> get_fleet_datasets(const DaemonParts& daemon, api::Request request);
api::Answer post_staging(const DaemonParts& daemon, const api::Request& request);
boost::asio::awaitable<api::Answer> post_verify(const DaemonParts& daemon, api::Request request);
boost::asio::awaitable<api::Answer> post_evict(const DaemonParts& daemon, api::Request request);
api::Answer post_scrub(const DaemonParts& daemon, const api::Request& request);
api::Answer post_cache_move(const DaemonParts& daemon, const api::Request& request);
api::Answer post_cache_reset(const DaemonParts& daemon, const api::Request& request);
api::Answer post_drop(const DaemonParts& daemon, const api::Request& request);
boost::asio::awaitable<api::Answer> delete_lease(const DaemonParts& daemon, api::Request request);

// output_handlers.cpp
boost::asio::awaitable<api::Answer> post_stage_out(const DaemonParts& daemon, api::Request request);
api::Answer get_outputs(const DaemonParts& daemon, const api::Request& request);
boost::asio::awaitable<api::Answer> get_output(const DaemonParts& daemon, api::Request request);
boost::asio::awaitable<api::Answer> post_output(const DaemonParts& daemon, api::Request request);
boost::asio::awaitable<api::Answer> get_latest_output(const DaemonParts& daemon, api::Request request);
api::Answer verify_output(const DaemonParts& daemon, const api::Request& request);

// job_handlers.cpp
// Whether the caller may end the asker's job: the same user, the user of its scheduler's job, or root.
boost::asio::awaitable<bool> may_end(const DaemonParts& daemon, api::Caller caller, Asker asker);
api::Answer get_jobs(const DaemonParts& daemon, const api::Request& request);
boost::asio::awaitable<api::Answer> get_job(const DaemonParts& daemon, api::Request request);
boost::asio::awaitable<api::Answer> get_job_events(const DaemonParts& daemon, api::Request request);
boost::asio::awaitable<api::Answer> delete_job(const DaemonParts& daemon, api::Request request);

}  // namespace spark
