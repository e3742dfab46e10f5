// Answers shared by handlers of several subjects.
#pragma once

#include <utility>

#include "daemon/api/server.hpp"
#include "daemon/service/parts.hpp"

namespace spark {

inline api::Answer ok_answer(json::value body) {
  api::Answer answer;
  answer.body = std::move(body);
  return answer;
}

template <class Body>
api::Answer answer_with(Result<Body> body) {
  return body ? ok_answer(std::move(*body)) : api::error_answer(body.error());
}

// 202: the job has started; its result is available under /v1/jobs.
inline api::Answer accepted_answer(const JobPtr& job) {
  api::Answer answer;
  answer.status = 202;
  answer.body = job->to_json();
  return answer;
}

}  // namespace spark
