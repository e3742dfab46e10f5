#include "slurm/http.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MostText = 64 << 20 };  // bytes; the daemon's longest answer lists 10,000 datasets

static int fail_as(int error) {
  errno = error;
  return -1;
}

static int connect_to(const char* path, const Wait* wait) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof address.sun_path) return fail_as(ENAMETOOLONG);
  strcpy(address.sun_path, path);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  while (connect(fd, (struct sockaddr*)&address, sizeof address) != 0) {
    int reason = errno;
    const bool is_away = reason == ECONNREFUSED || reason == ENOENT;
    // EAGAIN: the daemon's connection queue is full. No event tells the end of either.
    if (reason == EAGAIN || (is_away && now_ms() < wait->restart_until_ms)) {
      if (pause_for_ms(20, wait) == 0) continue;
      reason = errno;
    }
    close(fd);
    return fail_as(reason);
  }
  return fd;
}

static int send_all(int fd, const char* text, size_t length, const Wait* wait) {
  while (length > 0) {
    const ssize_t sent = send(fd, text, length, MSG_NOSIGNAL);
    if (sent > 0) {
      text += sent;
      length -= (size_t)sent;
    } else if (errno == EAGAIN) {
      if (wait_on(fd, POLLOUT, wait) != 0) return -1;
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return 0;
}

static int send_request(int fd, const HttpRequest* request, const Wait* wait) {
  const char* body = request->body == NULL ? "" : request->body;
  char* text = NULL;
  const int length = asprintf(&text,
                              "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                              "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                              request->method, request->target, strlen(body), body);
  if (length < 0) return fail_as(ENOMEM);
  const int result = send_all(fd, text, (size_t)length, wait);
  free(text);
  return result;
}

// Receives more bytes into the buffer. 1: received some; 0: the other side closed the connection.
static int receive(HttpAnswer* answer, const Wait* wait) {
  if (answer->begin > 0) {
    memmove(answer->buffer, answer->buffer + answer->begin, answer->end - answer->begin);
    answer->end -= answer->begin;
    answer->begin = 0;
  }
  if (answer->end == sizeof answer->buffer) return fail_as(EPROTO);  // one header line fills the whole buffer
  for (;;) {
    const ssize_t got =
        recv(answer->fd, answer->buffer + answer->end, sizeof answer->buffer - answer->end, 0);
    if (got >= 0) {
      answer->end += (size_t)got;
      return got > 0;
    }
    if (errno == EAGAIN) {
      if (wait_on(answer->fd, POLLIN, wait) != 0) return -1;
    } else if (errno != EINTR) {
      return -1;
    }
  }
}

// A line of the header or of the chunks, which ends with CR LF. Valid in the buffer until the next call.
static char* protocol_line(HttpAnswer* answer, const Wait* wait) {
  for (;;) {
    char* begin = answer->buffer + answer->begin;
    char* end = memmem(begin, answer->end - answer->begin, "\r\n", 2);
    if (end != NULL) {
      *end = '\0';
      answer->begin = (size_t)(end - answer->buffer) + 2;
      return begin;
    }
    const int got = receive(answer, wait);
    if (got == 0) errno = EPROTO;
    if (got <= 0) return NULL;
  }
}

static int read_header(HttpAnswer* answer, const Wait* wait) {
  const char* line = protocol_line(answer, wait);
  if (line == NULL) return -1;
  if (sscanf(line, "HTTP/1.%*d %d", &answer->status) != 1) return fail_as(EPROTO);
  bool has_length = false;
  while ((line = protocol_line(answer, wait)) != NULL && *line != '\0') {
    static const char length[] = "Content-Length:", chunked[] = "Transfer-Encoding: chunked";
    if (strncasecmp(line, length, sizeof length - 1) == 0) {
      answer->left = strtoull(line + sizeof length - 1, NULL, 10);
      has_length = true;
    }
    answer->chunked = answer->chunked || strcasecmp(line, chunked) == 0;
  }
  if (line == NULL) return -1;
  if (!has_length && !answer->chunked) answer->left = SIZE_MAX;  // until the other side closes
  answer->ended = !answer->chunked && answer->left == 0;
  return 0;
}

int http_send(HttpAnswer* answer, const HttpRequest* request, const Wait* wait) {
  *answer = (HttpAnswer){.fd = connect_to(request->socket, wait)};
  if (answer->fd < 0) return -1;
  if (send_request(answer->fd, request, wait) == 0 && read_header(answer, wait) == 0) return 0;
  const int error = errno;
  http_close(answer);
  return fail_as(error);
}

// Moves to the data of the next chunk.
static int next_chunk(HttpAnswer* answer, const Wait* wait) {
  char* line = protocol_line(answer, wait);
  // The end of the previous chunk, if there was one.
  if (line != NULL && *line == '\0') line = protocol_line(answer, wait);
  if (line == NULL) return -1;
  char* end = NULL;
  answer->left = strtoull(line, &end, 16);
  if (end == line) return fail_as(EPROTO);
  answer->ended = answer->left == 0;
  return 0;
}

// Some bytes of the body, valid in the buffer until the next call; 0: end of the body.
static ssize_t body_part(HttpAnswer* answer, const char** part, const Wait* wait) {
  if (!answer->ended && answer->chunked && answer->left == 0 && next_chunk(answer, wait) != 0) return -1;
  if (answer->ended) return 0;
  if (answer->begin == answer->end) {
    const int got = receive(answer, wait);
    if (got < 0) return -1;
    if (got == 0 && answer->left != SIZE_MAX) return fail_as(EPROTO);  // truncated
    if (got == 0) answer->ended = true;
    if (got == 0) return 0;
  }
  const size_t there = answer->end - answer->begin;
  const size_t length = there < answer->left ? there : answer->left;
  *part = answer->buffer + answer->begin;
  answer->begin += length;
  if (answer->left != SIZE_MAX) answer->left -= length;
  if (!answer->chunked && answer->left == 0) answer->ended = true;
  return (ssize_t)length;
}

// Returns the unconsumed end of the last part.
static void put_back(HttpAnswer* answer, size_t length) {
  answer->begin -= length;
  if (answer->left != SIZE_MAX) answer->left += length;
  if (length > 0) answer->ended = false;
}

static char* append(char* text, size_t length, const char* part, size_t more) {
  char* longer = length + more > MostText ? NULL : realloc(text, length + more + 1);
  if (longer == NULL) {
    free(text);
    errno = ENOMEM;
    return NULL;
  }
  memcpy(longer + length, part, more);
  longer[length + more] = '\0';
  return longer;
}

int http_line(HttpAnswer* answer, char** line, const Wait* wait) {
  char* text = NULL;
  size_t length = 0;
  const char* part = NULL;
  for (ssize_t got; (got = body_part(answer, &part, wait)) != 0;) {
    const char* end = got < 0 ? NULL : memchr(part, '\n', (size_t)got);
    const size_t taken = end == NULL ? (size_t)got : (size_t)(end - part);
    if (got < 0) free(text);
    if (got < 0) return -1;
    if (end != NULL) put_back(answer, (size_t)got - taken - 1);
    text = append(text, length, part, taken);
    if (text == NULL) return -1;
    length += taken;
    if (end != NULL) break;
  }
  *line = text;
  return text != NULL;
}

char* http_body(HttpAnswer* answer, const Wait* wait) {
  char* text = append(NULL, 0, "", 0);
  size_t length = 0;
  const char* part = NULL;
  ssize_t got = 0;
  while (text != NULL && (got = body_part(answer, &part, wait)) > 0) {
    text = append(text, length, part, (size_t)got);
    length += (size_t)got;
  }
  if (text != NULL && got < 0) {
    const int error = errno;
    free(text);
    errno = error;
    return NULL;
  }
  return text;
}

void http_close(HttpAnswer* answer) {
  if (answer->fd >= 0) close(answer->fd);
  answer->fd = -1;
}
