/*
 * Look-up in the table of compiled-in files: see embed.h. Runs on any thread.
 */
#include "embed.h"

#include <stdio.h>
#include <string.h>

const struct efr_embed *efr_embed_find(const char *name, int asset)
{
    for (size_t i = 0; i < efr_embed_count; i++) {
        const struct efr_embed *entry = &efr_embed_table[i];
        if ((entry->kind == EFR_EMBED_ASSET) == (asset != 0) &&
            !strcmp(entry->name, name))
            return entry;
    }
    return NULL;
}

int efr_embed_tree_path(const struct efr_embed *entry, char *out, size_t out_size)
{
#ifdef EFR_TREE
    if (entry->kind != EFR_EMBED_ASSET && strncmp(entry->name, "efr.", 4) != 0)
        return 0; /* argparse and re come from the system, not from the tree */
    int below_lua =
        entry->kind != EFR_EMBED_ASSET && strncmp(entry->name, "efr.cli.", 8) != 0;
    (void)snprintf(out, out_size, "%s/%s%s", EFR_TREE, below_lua ? "lua/" : "",
                   entry->path);
    return 1;
#else
    (void)entry;
    (void)out;
    (void)out_size;
    return 0;
#endif
}

int efr_embed_from_tree(void)
{
#ifdef EFR_TREE
    return 1;
#else
    return 0;
#endif
}
