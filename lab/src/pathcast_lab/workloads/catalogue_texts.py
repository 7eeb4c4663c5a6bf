"""What course catalogues say: other names for their elements, and words for their texts.

Only the generator may know the synonyms: what derives mappings has to find out.
"""

SYNONYMS: dict[str, tuple[str, ...]] = {
    "university": ("college", "school", "catalog", "courses"),
    "institution": ("universityName", "collegeName", "org"),
    "department": ("dept", "faculty", "division", "unit"),
    "label": ("name", "deptName", "caption"),
    "head": ("chair", "chairperson", "director"),
    "phone": ("telephone", "tel", "contact"),
    "course": ("class", "subject", "module", "offering"),
    "id": ("key", "ref"),
    "code": ("number", "courseNumber", "courseCode", "no"),
    "title": ("name", "courseTitle", "courseName"),
    "description": ("desc", "abstract", "summary", "content"),
    "credits": ("units", "creditHours", "points", "hours"),
    "level": ("year", "grade", "stage"),
    "schedule": ("timetable", "meeting", "when"),
    "day": ("days", "weekday", "date"),
    "time": ("hour", "begins", "period"),
    "place": ("venue", "location", "where"),
    "building": ("bldg", "house", "hall"),
    "room": ("roomNumber", "classroom", "rm"),
    "instructor": ("teacher", "lecturer", "professor", "staff"),
    "fullname": ("name", "instructorName"),
    "email": ("mail", "eMail", "address"),
    "office": ("officeRoom", "bureau"),
    "assistant": ("ta", "tutor", "helper"),
    "prerequisite": ("prereq", "requires", "requirement"),
    "textbook": ("book", "text", "reading"),
    "heading": ("bookTitle", "booktitle"),
    "publisher": ("press", "publishedBy"),
    "author": ("writer", "by"),
    "person": ("name", "authorName"),
    "country": ("nation", "origin"),
}
WORDS: tuple[str, ...] = (
    "algebra", "analysis", "ancient", "applied", "art", "biology", "calculus", "chemistry", "computing", "data",
    "design", "economics", "english", "ethics", "films", "french", "geology", "geometry", "german", "graphs",
    "history", "ideas", "languages", "law", "logic", "machines", "mathematics", "medicine", "methods", "modern",
    "music", "networks", "number", "optics", "physics", "plants", "poetry", "politics", "practice",
    "probability", "programming", "quantum", "rhetoric", "rivers", "science", "seminar", "society",
    "statistics", "studies", "systems", "theatre", "theory", "topics", "writing",
)  # fmt: skip
