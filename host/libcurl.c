/*
 * libcurl - finds libcurl at run time. See libcurl.h for the contract. Main thread only.
 */
#include "libcurl.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

#define LIBRARY "libcurl.so.4"
#define OLDEST 0x075500 /* 7.85: CURLOPT_PROTOCOLS_STR */

static struct libcurl api;

/* -- memory ----------------------------------------------------------------------- */

static void wiping_free(void *ptr)
{
    if (ptr != NULL)
        efr_wipe(ptr, malloc_usable_size(ptr));
    free(ptr);
}

/* realloc would leave the old bytes behind when it moves them. */
static void *wiping_realloc(void *ptr, size_t size)
{
    size_t old = ptr != NULL ? malloc_usable_size(ptr) : 0;
    void *result = malloc(size);

    if (result == NULL)
        return NULL;
    if (ptr != NULL)
        memcpy(result, ptr, old < size ? old : size);
    wiping_free(ptr);
    return result;
}

/* -- loading ---------------------------------------------------------------------- */

static int find_functions(void *library, struct efr_err *err)
{
    static const struct {
        const char *name;
        size_t offset;
    } functions[] = {
#define LIBCURL_ENTRY(name) {"curl_" #name, offsetof(struct libcurl, name)},
        LIBCURL_FUNCTIONS(LIBCURL_ENTRY)
#undef LIBCURL_ENTRY
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = dlsym(library, functions[i].name);

        if (function == NULL)
            return efr_err_set(err, "EFR_UNAVAILABLE", "%s has no %s", LIBRARY,
                               functions[i].name);
        memcpy((char *)&api + functions[i].offset, &function, sizeof(function));
    }
    return 0;
}

static int load(struct efr_err *err)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const curl_version_info_data *info;
    CURLcode rc;

    if (library == NULL)
        return efr_err_set(err, "EFR_UNAVAILABLE", "load libcurl: %s", dlerror());
    if (find_functions(library, err) != 0)
        goto failed;
    info = api.version_info(CURLVERSION_NOW);
    if (info->version_num < OLDEST) {
        efr_err_set(err, "EFR_UNAVAILABLE", "libcurl %s is too old, 7.85 is needed",
                    info->version);
        goto failed;
    }
    rc = api.global_init_mem(CURL_GLOBAL_DEFAULT, malloc, wiping_free, wiping_realloc,
                             strdup, calloc);
    if (rc != CURLE_OK) {
        efr_err_set(err, "EFR_UNAVAILABLE", "start libcurl: %s", api.easy_strerror(rc));
        goto failed;
    }
    return 0; /* the library stays for the life of the process */
failed:
    dlclose(library);
    return -1;
}

const struct libcurl *libcurl_load(struct efr_err *err)
{
    static bool loaded;

    if (!loaded && load(err) != 0)
        return NULL;
    loaded = true;
    return &api;
}
