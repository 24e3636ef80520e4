/* `becalm` in the image: hands `becalm generate` to the service and copies the answer, as plugin/becalm/service/client.py
 * does.
 *
 * Argo CD starts this for every render of every application, also where nothing has changed, and the start of Python takes
 * longer than all the rest of such a render. Whatever is not exactly `becalm generate` with a service that answers is left to
 * the command in Python, which takes the place of this process. So nothing depends on it but time. Elsewhere:
 *
 *   python -m becalm.launcher /opt/becalm/bin/becalm-python
 *   cc -O2 -static '-DPYTHON_COMMAND="/opt/becalm/bin/becalm-python"' image/becalm.c -o /opt/becalm/bin/becalm
 *
 * The message is a length of four bytes and, separated by NUL, the environment; with it go the directory and two files in
 * memory, for output and errors. They are copied only when the service says how the render ended, so that whatever dies
 * in between, nothing is printed in part. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#ifndef PYTHON_COMMAND
#error "PYTHON_COMMAND is to be the path of the command that becalm.launcher writes"
#endif

extern char **environ;

enum { FILES = 3, LONGEST_ANSWER = 4096, CHUNK = 1 << 18 };
enum { BUSY = 11, LATE = 6, BROKEN_PIPE = 141 };
enum { SECONDS_TO_CONNECT = 2, USUAL_DEADLINE = 55, PATIENCE = 5 };

/* The service did not answer. */
static const int NOBODY = -1;

static void set_timeout(int connection, int option, long seconds) {
    const struct timeval limit = {.tv_sec = seconds};
    (void)setsockopt(connection, SOL_SOCKET, option, &limit, sizeof limit);
}

/* Seconds after which a service that says nothing has not only much to do: it keeps the time itself. */
static long patience(void) {
    const char *text = getenv("BECALM_DEADLINE");
    const size_t length = text == NULL ? 0 : strlen(text);
    if (length == 0 || length > 6 || strspn(text, "0123456789") != length) return USUAL_DEADLINE + PATIENCE;
    return atol(text) + PATIENCE;
}

/* Whether the socket is there, in a directory that nobody else can write to. */
static bool is_ours(const char *path) {
    struct sockaddr_un address;
    char parent[sizeof address.sun_path];
    struct stat found;
    if (strlen(path) >= sizeof parent) return false;
    strcpy(parent, path);
    if (lstat(dirname(parent), &found) != 0 || found.st_uid != geteuid() || (found.st_mode & 022) != 0) return false;
    return lstat(path, &found) == 0;
}

/* A connection to a service of our own user; -1 where there is none. */
static int connected(const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct ucred peer;
    socklen_t length = sizeof peer;
    strcpy(address.sun_path, path); /* is_ours has looked at its length */
    const int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connection < 0) return -1;
    set_timeout(connection, SO_SNDTIMEO, SECONDS_TO_CONNECT);
    if (connect(connection, (const struct sockaddr *)&address, sizeof address) == 0 &&
        getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid())
        return connection;
    close(connection);
    return -1;
}

/* The message; its length goes to `size`. NULL where there is no memory for it. */
static char *message(size_t *size) {
    size_t body = 0;
    for (char **entry = environ; *entry != NULL; entry++) body += strlen(*entry) + 1;
    char *data = malloc(body + 4);
    if (data == NULL || body > UINT32_MAX) return NULL;
    for (int index = 0; index < 4; index++) data[index] = (char)(body >> (24 - 8 * index));
    char *end = data + 4;
    for (char **entry = environ; *entry != NULL; entry++) end = stpcpy(end, *entry) + 1;
    *size = body + 4;
    return data;
}

/* Send the message with its files. Who has no place for us says so without listening, so a connection that is closed is no
 * failure yet. */
static bool sent(int connection, const char *data, size_t size, const int files[FILES]) {
    union {
        char bytes[CMSG_SPACE(FILES * sizeof(int))];
        struct cmsghdr aligned;
    } control = {{0}};
    struct iovec part = {.iov_base = (void *)data, .iov_len = size};
    struct msghdr whole = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&whole);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(FILES * sizeof(int));
    memcpy(CMSG_DATA(rights), files, FILES * sizeof(int));
    while (part.iov_len > 0) {
        const ssize_t number = sendmsg(connection, &whole, MSG_NOSIGNAL);
        if (number < 0 && errno == EINTR) continue;
        if (number < 0) return errno == EPIPE || errno == ECONNRESET;
        part.iov_base = (char *)part.iov_base + number;
        part.iov_len -= (size_t)number;
        whole.msg_control = NULL; /* the files go once */
        whole.msg_controllen = 0;
    }
    return true;
}

/* One line of the service, without its end; false where none comes. */
static bool received(int connection, char answer[LONGEST_ANSWER]) {
    size_t length = 0;
    while (length < LONGEST_ANSWER) {
        const ssize_t number = recv(connection, answer + length, LONGEST_ANSWER - length, 0);
        if (number < 0 && errno == EINTR) continue;
        if (number <= 0) return false;
        length += (size_t)number;
        if (answer[length - 1] == '\n') {
            answer[length - 1] = '\0';
            return strlen(answer) == length - 1;
        }
    }
    return false;
}

static bool written(int target, const char *data, size_t size) {
    while (size > 0) {
        const ssize_t number = write(target, data, size);
        if (number < 0 && errno == EINTR) continue;
        if (number < 0) return false;
        data += number;
        size -= (size_t)number;
    }
    return true;
}

static bool copied(int source, int target) {
    static char chunk[CHUNK];
    ssize_t number;
    if (lseek(source, 0, SEEK_SET) != 0) return false;
    while ((number = read(source, chunk, sizeof chunk)) != 0) {
        if (number < 0 && errno == EINTR) continue;
        if (number < 0 || !written(target, chunk, (size_t)number)) return false;
    }
    return true;
}

static void say(const char *what, const char *more) {
    (void)!(written(2, "Error: ", 7) && written(2, what, strlen(what)) && written(2, more, strlen(more)) &&
            written(2, "\n", 1));
}

/* Print what was rendered; the exit code. The answer is `exit CODE`, `busy TEXT` or `late TEXT`. */
static int end(const char *answer, int output, int errors) {
    if (strncmp(answer, "busy ", 5) == 0 || strncmp(answer, "late ", 5) == 0) {
        say(answer + 5, "");
        return answer[0] == 'b' ? BUSY : LATE;
    }
    const char *code = answer + 5;
    const size_t length = strncmp(answer, "exit ", 5) == 0 ? strlen(code) : 0;
    if (length == 0 || length > 3 || strspn(code, "0123456789") != length) return NOBODY;
    (void)copied(errors, 2);
    if (atoi(code) != 0) return atoi(code);
    if (copied(output, 1)) return 0;
    if (errno == EPIPE) return BROKEN_PIPE;
    say("the output could not be written: ", strerror(errno));
    return 1;
}

/* Let the service render the application in the current directory; the exit code, or NOBODY. */
static int generate(void) {
    const char *path = getenv("BECALM_SOCKET");
    if (path == NULL || path[0] == '\0') path = "/tmp/becalm/render.sock";
    if (strcmp(path, "off") == 0 || !is_ours(path)) return NOBODY;
    const int connection = connected(path);
    if (connection < 0) return NOBODY;
    char answer[LONGEST_ANSWER];
    size_t size = 0;
    int code = NOBODY;
    char *data = message(&size);
    const int files[FILES] = {open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), memfd_create("output", MFD_CLOEXEC),
                              memfd_create("errors", MFD_CLOEXEC)};
    if (data != NULL && files[0] >= 0 && files[1] >= 0 && files[2] >= 0 && sent(connection, data, size, files)) {
        set_timeout(connection, SO_RCVTIMEO, patience());
        if (received(connection, answer)) code = end(answer, files[1], files[2]);
    }
    free(data);
    close(connection);
    return code;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "generate") == 0) {
        signal(SIGPIPE, SIG_IGN); /* an output that nobody reads is told by the exit code */
        const int code = generate();
        if (code != NOBODY) return code;
        signal(SIGPIPE, SIG_DFL);
        /* It has been asked. */
        if (setenv("BECALM_SOCKET", "off", 1) != 0) return 1;
    }
    argv[0] = (char[]){PYTHON_COMMAND};
    execv(PYTHON_COMMAND, argv);
    say("becalm cannot be started: " PYTHON_COMMAND ": ", strerror(errno));
    return 126;
}
