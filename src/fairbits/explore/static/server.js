// Questions to the explorer that serves this page.

const at = (path, query) => `${path}?${new URLSearchParams({ ...query, token: new URLSearchParams(location.search).get("token") ?? "" })}`;

const asked = async (path, query, body) => {
  const how = body === undefined ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let response;
  try {
    response = await fetch(at(path, query), how);
  } catch {
    throw new Error("The explorer no longer answers; start it again with fairbits explore.");
  }
  const document = await response.json();
  if (!response.ok) throw new Error(document.error.slice(0, 1).toUpperCase() + document.error.slice(1));
  return document;
};
