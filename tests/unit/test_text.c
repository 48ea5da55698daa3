/*
 * Unit tests of host/text: UTF-8 by the table of Unicode 3.9, clusters, widths, visible
 * forms. The fuzzer fuzz_text checks the same functions against each other.
 */
#include "unit.h"

#include "buf.h"
#include "text.h"

#define FFFD "\xef\xbf\xbd"

static char result[512];

static const char *apply(void (*fn)(const char *, size_t, struct efr_buf *),
                         const char *text, size_t len)
{
    struct efr_buf buf;
    efr_buf_init(&buf, false);
    fn(text, len, &buf);
    assert_true(buf.len < sizeof(result));
    if (buf.len)
        memcpy(result, buf.data, buf.len);
    result[buf.len] = '\0';
    efr_buf_finish(&buf);
    return result;
}

static void test_clean(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *out;
    } rows[] = {
        {"", ""},
        {"plain", "plain"},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\xff"
         "b",
         "a" FFFD "b"},
        {"\xc0\xaf", FFFD FFFD},                   /* overlong */
        {"\xe0\x80\xaf", FFFD FFFD FFFD},          /* overlong */
        {"\xed\xa0\x80", FFFD FFFD FFFD},          /* surrogate */
        {"\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD}, /* above U+10FFFF */
        {"\xf0\x9f\x98", FFFD},                    /* cut: one maximal subpart */
        {"\xe2\x82"
         "A",
         FFFD "A"},
        {"\xf1\x80\x80\xe1\x80\xc2"
         "b",
         FFFD FFFD FFFD "b"}, /* the standard's example */
        {"\x80", FFFD},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = strlen(rows[i].in);
        assert_string_equal(apply(efr_text_clean, rows[i].in, len), rows[i].out);
        assert_int_equal(efr_text_is_utf8(rows[i].in, len),
                         !strcmp(rows[i].in, rows[i].out));
        assert_true(efr_text_is_utf8(rows[i].out, strlen(rows[i].out)));
    }
}

static void test_printable(void **state)
{
    (void)state;
    static const struct {
        const char *in;
        const char *out;
    } rows[] = {
        {"rm -rf \"x y\"", "rm -rf \"x y\""},
        {"a\x1b[31m", "a\xe2\x90\x9b[31m"},
        {"\n\t\x7f", "\xe2\x90\x8a\xe2\x90\x89\xe2\x90\xa1"},
        {"\xc2\x9b", "<U+009B>"}, /* C1 control */
        {"a\xe2\x80\xae"
         "b",
         "a<U+202E>b"}, /* right-to-left override */
        {"a\xe2\x80\x8b"
         "b",
         "a<U+200B>b"},                    /* zero width space */
        {"\xe2\x80\xa8", "<U+2028>"},      /* line separator */
        {"\xe3\x85\xa4", "<U+3164>"},      /* Hangul filler */
        {"\xf3\xa0\x81\x81", "<U+E0041>"}, /* tag */
        {"\xee\x80\x80", "<U+E000>"},      /* private use */
        {"\xff", FFFD},
        {"\xe2\x9d\xa4\xef\xb8\x8f", "\xe2\x9d\xa4\xef\xb8\x8f"}, /* heart, emoji form */
        /* a joiner between two emoji stays, between letters it shows */
        {"\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9",
         "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9"},
        {"x\xe2\x80\x8dy", "x<U+200D>y"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(apply(efr_text_printable, rows[i].in, strlen(rows[i].in)),
                            rows[i].out);
    assert_string_equal(apply(efr_text_printable, "a\0b", 3), "a\xe2\x90\x80"
                                                              "b");
}

static void test_width_and_cluster(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t cluster_bytes;
        size_t width;
    } rows[] = {
        {"", 0, 0},
        {"abc", 1, 3},
        {"\xe6\x97\xa5\xe6\x9c\xac", 3, 4},                      /* two wide letters */
        {"e\xcc\x81x", 3, 2},                                    /* combining accent */
        {"\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9", 11, 2}, /* joined emoji */
        {"\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa", 8, 2},              /* flag */
        {"\xe2\x9d\xa4\xef\xb8\x8f", 6, 2},                      /* emoji variation */
        {"\xff\xff", 1, 2},                                      /* broken bytes */
        {"\r\n", 2, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t len = strlen(rows[i].text);
        assert_int_equal(efr_text_cluster(rows[i].text, len), rows[i].cluster_bytes);
        assert_int_equal(efr_text_width(rows[i].text, len), rows[i].width);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clean),
        cmocka_unit_test(test_printable),
        cmocka_unit_test(test_width_and_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
