/*
 * libcurl - finds libcurl at run time. Headers are needed to build, the library is not: it is
 * loaded at the first request, so that nothing else pays for it.
 *
 * Owns the table of functions and the one global initialisation. Must not know requests. Main
 * thread only.
 */
#ifndef EFR_LIBCURL_H
#define EFR_LIBCURL_H

#include <curl/curl.h>

#include "err.h"

#define LIBCURL_FUNCTIONS(X)                                                             \
    X(easy_cleanup)                                                                      \
    X(easy_getinfo)                                                                      \
    X(easy_init)                                                                         \
    X(easy_setopt)                                                                       \
    X(easy_strerror)                                                                     \
    X(free)                                                                              \
    X(global_init_mem)                                                                   \
    X(multi_add_handle)                                                                  \
    X(multi_assign)                                                                      \
    X(multi_cleanup)                                                                     \
    X(multi_info_read)                                                                   \
    X(multi_init)                                                                        \
    X(multi_remove_handle)                                                               \
    X(multi_setopt)                                                                      \
    X(multi_socket_action)                                                               \
    X(multi_strerror)                                                                    \
    X(slist_append)                                                                      \
    X(slist_free_all)                                                                    \
    X(url)                                                                               \
    X(url_cleanup)                                                                       \
    X(url_get)                                                                           \
    X(url_set)                                                                           \
    X(url_strerror)                                                                      \
    X(version_info)

/* curl_NAME is the member NAME. */
struct libcurl {
#define LIBCURL_MEMBER(name) __typeof__(curl_##name) *(name);
    LIBCURL_FUNCTIONS(LIBCURL_MEMBER)
#undef LIBCURL_MEMBER
};

/* Loads and initialises the library once for the process. What it allocates is wiped before
 * it is freed, since keys pass through it. NULL with *err set (EFR_UNAVAILABLE). */
const struct libcurl *libcurl_load(struct efr_err *err);

#endif
