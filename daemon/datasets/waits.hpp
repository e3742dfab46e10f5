// The waits of a staging between two attempts: for its source, for the end of a doubt, for a changed
// configuration. Each shows its reason, and ends when the task is cancelled.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "daemon/datasets/context.hpp"
#include "daemon/datasets/task.hpp"

namespace spark::datasets {

asio::awaitable<void> pause_for(TaskPtr task, Duration time);  // or until it is cancelled

// For a volume on its first attempt: it may be ready in a moment.
asio::awaitable<void> wait_while_settling(const Context& context, TaskPtr task);

// For a task that can't go on, because of `why`: waits that long, then until its source can be read, or until
// `end`. Takes the dataset's current configuration, and does not wait for one that was removed from it. Only
// those of its requests wait that have the patience for it.
asio::awaitable<void> wait_for_source(const Context& context, TaskPtr task, Error why, Duration pause,
                                      SteadyTime end = SteadyTime::max());

// Whether the doubt ended, or the task was cancelled.
asio::awaitable<bool> doubt_passed(const Context& context, TaskPtr task);

// The dataset's source, or the part of it to stage, has changed in the configuration.
bool is_redefined(const Context& context, const Task& task);

}  // namespace spark::datasets
